import Glibc

/// The program `fuzz TARGET [LIBFUZZER-OPTION | FOLDER]…`, built and run by contrib/fuzz/run.
@main enum FuzzMain {
    nonisolated(unsafe) private static var target = FuzzTarget.frames

    static func main() {
        guard CommandLine.argc > 1, let target = FuzzTarget(rawValue: CommandLine.arguments[1]) else {
            print(FuzzTarget.allCases.map(\.rawValue).joined(separator: "\n"))
            return
        }
        self.target = target
        var count = CommandLine.argc - 1
        var arguments = CommandLine.unsafeArgv + 1
        exit(
            runDriver(&count, &arguments) { start, count in
                do {
                    try FuzzMain.target.check(Array(UnsafeRawBufferPointer(start: start, count: count)))
                } catch {
                    fatalError("\(FuzzMain.target): \(error)")
                }
                return 0
            })
    }
}

/// The entry point of libFuzzer as a library (FuzzerInterface.h).
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<Int32>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ check: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

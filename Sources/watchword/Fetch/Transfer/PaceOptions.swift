import ArgumentParser
import WatchwordProtocol

/// The options for rates, sizes, concurrency and progress.
struct PaceOptions: ParsableArguments {
    @Flag(help: "Request a compressed response and write it decompressed.")
    var compressed = false

    @Option(
        help: ArgumentHelp("Limit the transfer rate; k, M and G are powers of 1024.", valueName: "bytes per second"))
    var limitRate: String?

    @Option(
        help: ArgumentHelp(
            "Exit with code 63 if the body is larger; k, M and G are powers of 1024.", valueName: "bytes"))
    var maxFilesize: String?

    @Option(
        name: [.customShort("Y"), .long],
        help: ArgumentHelp(
            "Exit with code 28 if the transfer is slower than this for the time of -y.", valueName: "bytes per second"))
    var speedLimit: Int?

    @Option(
        name: [.customShort("y"), .long], help: ArgumentHelp("The time for -Y; default 30.", valueName: "seconds"))
    var speedTime: Int?

    @Flag(name: [.customShort("Z"), .long], help: "Fetch all URLs at once.")
    var parallel = false

    @Option(help: ArgumentHelp("The maximum number of concurrent fetches with -Z.", valueName: "number"))
    var parallelMax = 50

    @Flag(name: .shortAndLong, help: "Show no progress and no errors.")
    var silent = false

    @Flag(name: [.customShort("S"), .long], help: "Show errors even with -s.")
    var showError = false

    @Flag(name: [.customShort("#"), .long], help: "Show only a progress bar.")
    var progressBar = false

    @Flag(help: "Show no progress. Without a terminal, no progress is shown in any case.")
    var noProgressMeter = false

    func validate() throws {
        for (text, name) in [(limitRate, "--limit-rate"), (maxFilesize, "--max-filesize")] {
            if let text, ByteCount.parse(text) == nil {
                throw ValidationError("\(name) takes a number of bytes, such as 500k or 2M")
            }
        }
        // The broker limits the open bodies of one connection.
        guard (1...Limits.openBodies).contains(parallelMax) else {
            throw ValidationError("--parallel-max takes 1 to \(Limits.openBodies)")
        }
        guard (speedLimit ?? 1) > 0, (speedTime ?? 1) > 0 else {
            throw ValidationError("-Y and -y take a number above 0")
        }
    }

    func set(_ params: inout FetchRunParams) {
        params.decompress = compressed
        params.maxBytesPerSecond = limitRate.flatMap(ByteCount.parse).flatMap { $0 > 0 ? $0 : nil }
        params.maxBodyBytes = maxFilesize.flatMap(ByteCount.parse).flatMap { $0 > 0 ? $0 : nil }
        if speedLimit != nil || speedTime != nil {
            params.lowSpeed = LowSpeed(bytesPerSecond: speedLimit ?? 1, seconds: speedTime ?? 30)
        }
    }
}

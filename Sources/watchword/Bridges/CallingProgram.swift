import Glibc

/// The program that has started this one.
enum CallingProgram {
    /// Returns the name of the parent's program file; if the parent runs as another user, such as sudo, the name of the
    /// process (proc(5), `comm`). `nil` if the parent has exited. Any program can pretend to be another one: it can start
    /// this process and then execute the other program.
    static func name() -> String? {
        let parent = getppid()
        guard parent > 1 else { return nil }
        let path = SmallFile.target(of: "/proc/\(parent)/exe")
        let file = path?.split(separator: "/").last.map { String($0).replacing(" (deleted)", with: "") }
        let process = SmallFile.text(of: "/proc/\(parent)/comm")?.split(separator: "\n").first.map { String($0) }
        guard getppid() == parent else { return nil }
        return file ?? process
    }
}

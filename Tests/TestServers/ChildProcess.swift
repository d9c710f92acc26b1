internal import Glibc
internal import TestEnvironment

/// A program that a test runs. It inherits only the three standard streams, and no other test can delay its end.
///
/// Foundation's `Process` waits for the end of a socket that children of other tests inherit, and uses select(2), which knows no
/// descriptor above 1023.
package final class ChildProcess: Sendable {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    package enum Output: Sendable {
        case discarded, standardOutput
        case standardOutputAndError
    }

    private let pid: Int32
    private let output: Int32
    /// The end of standard input that keeps it open; -1 otherwise.
    private let input: Int32

    /// - Parameters:
    ///   - input: at most what a pipe holds (64 KiB); standard input ends after it.
    ///   - outlivesInput: `false` for a program that exits at the end of its standard input, which this object keeps open.
    package init(
        _ command: [String], environment: [String: String]? = nil, input: String = "", outlivesInput: Bool = true,
        output: Output = .discarded
    ) throws {
        let (inlet, outlet) = (try Self.pipe(), try Self.pipe())
        let childEnds = [inlet.read, outlet.write] + (outlivesInput ? [inlet.write] : [])
        defer { for descriptor in childEnds { close(descriptor) } }
        guard write(inlet.write, input, input.utf8.count) == input.utf8.count else { throw Self.failure(command) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, inlet.read, STDIN_FILENO)
        for stream in [STDOUT_FILENO, STDERR_FILENO] {
            switch (output, stream) {
            case (.standardOutput, STDOUT_FILENO), (.standardOutputAndError, _):
                posix_spawn_file_actions_adddup2(&actions, outlet.write, stream)
            default: posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0)
            }
        }
        watchword_test_close_from(&actions, STDERR_FILENO + 1)
        var arguments = command.map { strdup($0) } + [nil]
        var variables = environment.map { $0.map { strdup("\($0)=\($1)") } + [nil] } ?? []
        defer { for text in arguments + variables { free(text) } }
        var pid: pid_t = 0
        let error = variables.withUnsafeMutableBufferPointer { variables in
            let variables = environment == nil ? environ : variables.baseAddress
            return posix_spawnp(&pid, command[0], &actions, nil, &arguments, variables)
        }
        guard error == 0 else {
            close(outlet.read)
            throw Failure(description: "cannot run \(command[0]): \(String(cString: strerror(error)))")
        }
        self.pid = pid
        self.output = outlet.read
        self.input = outlivesInput ? -1 : inlet.write
    }

    deinit {
        close(output)
        close(input)
    }

    private static func pipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard watchword_test_pipe(&ends) == 0 else { throw failure(["pipe"]) }
        return (ends[0], ends[1])
    }

    private static func failure(_ command: [String]) -> Failure {
        Failure(description: "\(command[0]): \(String(cString: strerror(errno)))")
    }

    /// Returns the next output of the program, or an empty text at its end.
    package func availableText() -> String {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        var count = read(output, &bytes, bytes.count)
        while count < 0 && errno == EINTR { count = read(output, &bytes, bytes.count) }
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    /// Returns the remaining output, and the exit status, or the negative number of the signal that ended the program.
    package func finish() -> (status: Int32, text: String) {
        var text = ""
        while case let more = availableText(), !more.isEmpty { text += more }
        return (wait(), text)
    }

    package func wait() -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : -(status & 0x7F)
    }

    /// Kills the program. May be called again, and after its exit.
    package func end() {
        var information = siginfo_t()
        guard waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0 else { return }
        kill(pid, SIGKILL)
        _ = wait()
    }

    /// Runs a program until it exits.
    package static func run(
        _ command: [String], environment: [String: String]? = nil, input: String = "",
        output: Output = .standardOutputAndError
    ) throws -> (status: Int32, text: String) {
        try ChildProcess(command, environment: environment, input: input, output: output).finish()
    }
}

import CPlatform
import Dispatch
import Glibc
import Logging
import Synchronization
import WatchwordCore
import WatchwordProtocol

/// Runs the configured commands that print passwords, each on a thread that may wait.
final class CommandRunner: CommandPort {
    private let queue = DispatchQueue(label: "watchword.commands", attributes: .concurrent)
    private let running = Mutex(0)
    private let isStopping = Atomic(false)
    private let threads = DispatchGroup()
    private let log: Logger

    init(log: Logger) { self.log = log }

    func password(from command: CredentialCommand, completion: @escaping @Sendable (Secret?) -> Void) {
        let mayRun = running.withLock { running in
            guard running < Limits.credentialCommands else { return false }
            running += 1
            return true
        }
        guard mayRun else {
            report(CommandProblem("\(Limits.credentialCommands) commands are already running"), command)
            return completion(nil)
        }
        queue.async(group: threads) { [self] in
            var password: Secret?
            do throws(CommandProblem) {
                let limit = ContinuousClock.now + Limits.credentialCommand
                password = try RunningCommand(command).password {
                    !isStopping.load(ordering: .relaxed) && .now < limit
                }
            } catch {
                report(error, command)
            }
            running.withLock { $0 -= 1 }
            completion(password)
            watchword_clear_stack()
        }
    }

    /// Ends the running commands. Waits for that at most a second.
    func shutDown() {
        isStopping.store(true, ordering: .relaxed)
        _ = threads.wait(timeout: .now() + 1)
    }

    private func report(_ problem: CommandProblem, _ command: CredentialCommand) {
        log.warning(
            "a configured command supplied no password",
            metadata: ["program": "\(command.program)", "reason": "\(problem.text)"])
    }
}

/// The reason why a command supplies no password.
private struct CommandProblem: Error {
    let text: String

    init(_ text: String) { self.text = text }
}

/// A started command and the reading end of its output.
private struct RunningCommand: ~Copyable {
    private let pid: pid_t
    private let output: Int32

    init(_ command: CredentialCommand) throws(CommandProblem) {
        let arguments = command.arguments.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var (pid, output): (pid_t, Int32) = (0, -1)
        let error = watchword_start_command(command.program, arguments, &pid, &output)
        guard error == 0 else { throw CommandProblem("cannot run it: \(String(cString: strerror(error)))") }
        (self.pid, self.output) = (pid, output)
    }

    deinit { close(output) }

    /// Returns the first line of the output, after the command has ended. Ends the command when `mayContinue` is false.
    func password(while mayContinue: () -> Bool) throws(CommandProblem) -> Secret {
        var line = FirstLine()
        var isOver = false
        while !isOver || hasOutput(within: 0) {
            guard mayContinue(), !line.isTooLong else { break }
            if hasOutput(within: 20) { line.read(from: output) }
            isOver = isOver || hasExited
        }
        // Before the process is reaped: afterwards its ID may belong to another group.
        kill(-pid, SIGKILL)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
        guard !line.isTooLong else {
            throw CommandProblem("its output is longer than \(FirstLine.largestOutput) bytes")
        }
        guard isOver else {
            throw CommandProblem("it did not end within \(Limits.credentialCommand), or the broker is stopping")
        }
        guard status == 0 else {
            let code = (status >> 8) & 0xFF
            throw CommandProblem(
                status & 0x7F == 0 ? "it exited with status \(code)" : "it was ended by signal \(status & 0x7F)")
        }
        guard let password = line.password else {
            throw CommandProblem(
                "the first line of its output is empty, longer than \(Limits.credentialBytes) bytes, or contains "
                    + "control characters")
        }
        return password
    }

    /// Whether there is output. Waits for it at most this number of milliseconds.
    private func hasOutput(within milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, milliseconds) > 0 else { return false }
        if entry.revents & Int16(POLLIN) != 0 { return true }
        // The output has ended, so the call above no longer waits.
        usleep(useconds_t(milliseconds) * 1000)
        return false
    }

    /// Whether the process has ended. It is not reaped.
    private var hasExited: Bool {
        var info = siginfo_t()
        return waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_signo != 0
    }
}

/// The first line of a command's output. The buffer is wiped.
private struct FirstLine: ~Copyable {
    /// The limit for the whole output, in bytes: a password manager may print notes after the password.
    static let largestOutput = 64 << 10

    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: largestOutput + 1, alignment: 1)
    private var count = 0

    init() {}

    deinit {
        watchword_wipe(buffer.baseAddress, count)
        buffer.deallocate()
    }

    var isTooLong: Bool { count > Self.largestOutput }

    mutating func read(from descriptor: Int32) {
        let received = Glibc.read(descriptor, buffer.baseAddress! + count, buffer.count - count)
        count += max(0, received)
    }

    /// The line without its end; `nil` if it cannot be a password.
    var password: Secret? {
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        var line = bytes[..<(bytes.firstIndex(of: 0x0A) ?? count)]
        if line.last == 0x0D { line = line.dropLast() }
        let isPassword = !line.isEmpty && line.count <= Limits.credentialBytes
        guard isPassword, !line.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        return Secret(copying: UnsafeRawBufferPointer(rebasing: line))
    }
}

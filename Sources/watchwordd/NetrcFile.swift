import CPlatform
import Dispatch
import Glibc
import Logging
import Synchronization
import WatchwordCore
import WatchwordProtocol

/// The netrc file that the configuration names: one that only the user can read and change, read on a thread of its own.
final class NetrcFile: NetrcPort {
    private struct State {
        /// The last problem that was logged, so that it is logged once and not at each fetch.
        var problem: String?
        /// Readings that did not end in time: a file system that hangs.
        var hanging = 0
    }

    private let queue = DispatchQueue(label: "watchword.netrc")
    private let state = Mutex(State())
    private let log: Logger

    init(log: Logger) { self.log = log }

    func logins(
        for query: NetrcQuery, in file: String, completion: @escaping @Sendable ([Netrc.Login]) -> Void
    ) {
        let reading = NetrcReading(completion)
        guard state.withLock({ $0.hanging == 0 }) else { return reading.end([]) }
        queue.async {
            self.read(file, query, for: reading)
            watchword_clear_stack()
        }
        let limit = Limits.netrcRead / .milliseconds(1)
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(limit))) {
            // Counted before the end of the reading, which takes it back, can come in between.
            self.state.withLock { state in if reading.expire() { state.hanging += 1 } }
            guard reading.hasExpired else { return }
            self.note("\(file) is not used: it could not be read within \(Limits.netrcRead); look at its file system")
            reading.end([])
        }
    }

    /// Logs what is wrong with the file, before a fetch needs it. `nil` for no file.
    func check(_ file: String?) {
        guard let file else { return }
        queue.async {
            self.state.withLock { $0.problem = nil }
            do throws(NetrcProblem) {
                _ = try NetrcContent.read(Self.path(file))
            } catch {
                self.note(error.text)
            }
            watchword_clear_stack()
        }
    }

    private func read(_ file: String, _ query: NetrcQuery, for reading: NetrcReading) {
        var logins: [Netrc.Login] = []
        do throws(NetrcProblem) {
            let content = try NetrcContent.read(Self.path(file))
            logins = content.withUnsafeBytes { Netrc($0) { query.includes(machine: $0) }.logins }
            if !reading.hasExpired { state.withLock { $0.problem = nil } }
        } catch {
            note(error.text)
        }
        state.withLock { state in if !reading.finish() { state.hanging -= 1 } }
        reading.end(logins)
    }

    private func note(_ problem: String) {
        let isNews = state.withLock { state in
            defer { state.problem = problem }
            return state.problem != problem
        }
        if isNews { log.warning("the netrc file cannot be used", metadata: ["reason": "\(problem)"]) }
    }

    private static func path(_ file: String) throws(NetrcProblem) -> String {
        guard file.hasPrefix("~/") else { return file }
        guard let home = getenv("HOME").map({ String(cString: $0) }), home.hasPrefix("/") else {
            throw NetrcProblem(
                text: "cannot find \(file): HOME is not set; write the whole path into credentials.netrc")
        }
        return "\(home)\(file.dropFirst())"
    }
}

/// One reading for one fetch: it ends once, with what was found or with the time.
private final class NetrcReading: Sendable {
    private enum Phase { case running, expired, finished }

    private let phase = Mutex(Phase.running)
    private let completion: Mutex<(@Sendable ([Netrc.Login]) -> Void)?>

    init(_ completion: @escaping @Sendable ([Netrc.Login]) -> Void) { self.completion = Mutex(completion) }

    var hasExpired: Bool { phase.withLock { $0 == .expired } }

    /// `false` where it is over already.
    func expire() -> Bool { change(to: .expired) }

    /// `false` where the time was over before.
    func finish() -> Bool { change(to: .finished) }

    /// Calls the completion, the first time.
    func end(_ logins: [Netrc.Login]) {
        let first = completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        first?(logins)
    }

    private func change(to next: Phase) -> Bool {
        phase.withLock { phase in
            guard phase == .running else { return false }
            phase = next
            return true
        }
    }
}

/// Why the file is not used: what is wrong with which file, and what to do.
private struct NetrcProblem: Error {
    let text: String
}

private enum NetrcContent {
    /// The content of a regular file that nobody but the user may read or change.
    static func read(_ path: String) throws(NetrcProblem) -> Secret {
        // Without O_NONBLOCK a named pipe would be waited for.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard descriptor >= 0 else { throw problem(opening: path, errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw problem(opening: path, errno) }
        if let text = objection(status, path) { throw NetrcProblem(text: text) }
        // One byte more shows that it has grown since then.
        let size = Int(status.st_size)
        var error: Int32 = 0
        let content = Secret(capacity: size + 1) { block in
            var count = 0
            while count < block.count {
                let received = Glibc.read(descriptor, block.baseAddress?.advanced(by: count), block.count - count)
                if received < 0 && errno == EINTR { continue }
                if received < 0 { error = errno }
                guard received > 0 else { break }
                count += received
            }
            return count
        }
        guard error == 0 else { throw problem(opening: path, error) }
        guard content.count == size else {
            throw NetrcProblem(text: "\(path) is not used: it has changed while it was read")
        }
        return content
    }

    private static func objection(_ status: stat, _ path: String) -> String? {
        if status.st_mode & S_IFMT != S_IFREG { return "\(path) is not used: it is not a regular file" }
        if status.st_uid != geteuid() {
            return "\(path) is not used: it belongs to user \(status.st_uid); replace it with a file of your own"
        }
        if status.st_mode & 0o077 != 0 {
            let mode = String(status.st_mode & 0o7777, radix: 8)
            return "\(path) is not used: others have rights to it (mode 0\(mode)); run \"chmod 600\" on it"
        }
        guard status.st_size <= Limits.netrcBytes else {
            return "\(path) is not used: it is larger than \(Limits.netrcBytes) bytes"
        }
        return nil
    }

    private static func problem(opening path: String, _ error: Int32) -> NetrcProblem {
        switch error {
        case ELOOP:
            NetrcProblem(text: "\(path) is not used: it is a symbolic link; name the file itself in credentials.netrc")
        case ENOENT:
            NetrcProblem(text: "\(path) does not exist; create it, or remove credentials.netrc from the configuration")
        case EACCES:
            NetrcProblem(text: "cannot read \(path): permission denied; run \"chmod 600\" on it")
        default:
            NetrcProblem(text: "cannot read \(path): \(String(cString: strerror(error)))")
        }
    }
}

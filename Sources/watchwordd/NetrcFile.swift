import CPlatform
import Dispatch
import Glibc
import Logging
import Synchronization
import WatchwordCore
import WatchwordProtocol

/// Reads the configured netrc file on a separate thread. Only the user may have access to the file.
final class NetrcFile: NetrcPort {
    private struct State {
        /// The last problem that was logged, so that it is not logged again for each fetch.
        var problem: String?
        /// The number of reads that have timed out but not ended, for example because a file system hangs.
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
            // The read expires and is counted under one lock, so that its end cannot decrement the count first.
            self.state.withLock { state in if reading.expire() { state.hanging += 1 } }
            guard reading.hasExpired else { return }
            self.report("\(file) could not be read within \(Limits.netrcRead); check its file system")
            reading.end([])
        }
    }

    /// Logs a problem with the file, if there is one, before a fetch needs the file. No effect for `nil`.
    func check(_ file: String?) {
        guard let file else { return }
        queue.async {
            self.state.withLock { $0.problem = nil }
            do throws(NetrcProblem) {
                _ = try NetrcContent.read(Self.path(file))
            } catch {
                self.report(error.text)
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
            report(error.text)
        }
        state.withLock { state in if !reading.finish() { state.hanging -= 1 } }
        reading.end(logins)
    }

    private func report(_ problem: String) {
        let isNews = state.withLock { state in
            defer { state.problem = problem }
            return state.problem != problem
        }
        if isNews { log.warning("the netrc file cannot be used", metadata: ["reason": "\(problem)"]) }
    }

    private static func path(_ file: String) throws(NetrcProblem) -> String {
        guard file.hasPrefix("~/") else { return file }
        guard let home = ProcessEnvironment.text("HOME"), home.hasPrefix("/") else {
            throw NetrcProblem(
                text: "cannot find \(file): HOME is not set; use an absolute path in credentials.netrc")
        }
        return "\(home)\(file.dropFirst())"
    }
}

/// One read for one fetch. Ends once: with a result, or by timeout.
private final class NetrcReading: Sendable {
    private enum Phase { case running, expired, finished }

    private let phase = Mutex(Phase.running)
    private let completion: Mutex<(@Sendable ([Netrc.Login]) -> Void)?>

    init(_ completion: @escaping @Sendable ([Netrc.Login]) -> Void) { self.completion = Mutex(completion) }

    var hasExpired: Bool { phase.withLock { $0 == .expired } }

    /// Marks the read as timed out; `false` if it has ended already.
    func expire() -> Bool { change(to: .expired) }

    /// Marks the read as finished; `false` if it has timed out already.
    func finish() -> Bool { change(to: .finished) }

    /// Calls the completion, once.
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

/// The reason why the file cannot be used.
private struct NetrcProblem: Error {
    let text: String
}

private enum NetrcContent {
    /// Returns the contents of a regular file that only the user may read or change.
    static func read(_ path: String) throws(NetrcProblem) -> Secret {
        let file: CarefulFile
        do throws(CarefulFile.Failure) { file = try CarefulFile(path) } catch {
            guard case .systemCall(let number) = error else { throw NetrcProblem(text: "\(path) \(error.text)") }
            throw problem(opening: path, number)
        }
        let status = file.status
        if let text = fileProblem(status, path) { throw NetrcProblem(text: text) }
        // One byte more than the size, to detect that the file has grown.
        let size = Int(status.st_size)
        var error: Int32 = 0
        let content = Secret(reading: file.descriptor, capacity: size + 1, error: &error)
        guard error == 0 else { throw problem(opening: path, error) }
        guard content.count == size else {
            throw NetrcProblem(text: "\(path) changed while it was read")
        }
        return content
    }

    private static func fileProblem(_ status: stat, _ path: String) -> String? {
        if status.st_uid != geteuid() {
            return "\(path) belongs to user \(status.st_uid); replace it with a file of your own"
        }
        if status.st_mode & 0o077 != 0 {
            let mode = String(status.st_mode & 0o7777, radix: 8)
            return "other users have access to \(path) (mode 0\(mode)); run \"chmod 600\" on it"
        }
        guard status.st_size <= Limits.netrcBytes else {
            return "\(path) is larger than \(Limits.netrcBytes) bytes"
        }
        return nil
    }

    private static func problem(opening path: String, _ error: Int32) -> NetrcProblem {
        switch error {
        case ENOENT:
            NetrcProblem(text: "\(path) does not exist; create it, or remove credentials.netrc from the configuration")
        case EACCES:
            NetrcProblem(text: "cannot read \(path): permission denied; run \"chmod 600\" on it")
        default:
            NetrcProblem(text: "cannot read \(path): \(String(cString: strerror(error)))")
        }
    }
}

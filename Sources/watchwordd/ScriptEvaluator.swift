import CPlatform
import Glibc
import WatchwordCore
import WatchwordProtocol

/// The process that evaluates PAC files (watchword-pac), and the script that it has loaded. It is started when it is
/// first used, and again after it was ended.
struct ScriptEvaluator: ~Copyable {
    private static let program = "watchword-pac"
    private static let longestReply = 8 << 10

    private var pid: pid_t = 0
    private var socket: Int32 = -1
    private var loaded: PACScript?

    init() {}

    /// Returns the reply to a question; empty if there is none, and the script is only loaded. Returns `nil` if there was no
    /// reply in time, and ends the process.
    mutating func evaluate(
        _ script: PACScript, _ question: String?, within limit: Duration
    ) throws(UpstreamFailure) -> String? {
        let deadline = ContinuousClock.now + limit
        let wasRunning = socket >= 0
        var reply = try ask(question, script, by: deadline)
        // A process that has run before may have ended since then, for example because too many name lookups hung.
        if reply == .ended, wasRunning { reply = try ask(question, script, by: deadline) }
        switch reply {
        case .text(let text): return text
        case .late: return nil
        case .ended: throw UpstreamFailure("the process that evaluates the PAC file has ended; correct the file")
        }
    }

    /// Ends the process. Has no effect without one.
    mutating func end() {
        guard socket >= 0 else { return }
        close(socket)
        // The process that resolves names belongs to the group.
        kill(-pid, SIGKILL)
        while waitpid(pid, nil, 0) < 0 && errno == EINTR {}
        (socket, loaded) = (-1, nil)
    }

    private mutating func start() throws(UpstreamFailure) {
        let path = Self.path
        let error = watchword_start_evaluator(path, getenv("TZ"), &pid, &socket)
        guard error == 0 else {
            socket = -1
            let advice = error == EPERM ? "; set process.filter-system-calls to false" : ""
            throw UpstreamFailure(
                "cannot run \(path), which evaluates PAC files: \(String(cString: strerror(error)))\(advice)")
        }
    }

    /// The directory of this program, or the directory for internal programs beside it.
    private static var path: String {
        var own = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = own.withUnsafeMutableBytes { readlink("/proc/self/exe", $0.baseAddress!, $0.count) }
        let folder = String(decoding: own[..<max(0, count)], as: UTF8.self)
            .split(separator: "/").dropLast().map { "/\($0)" }.joined()
        let internalPath = "\(folder)/../lib/watchword/\(program)"
        return access(internalPath, X_OK) == 0 ? internalPath : "\(folder)/\(program)"
    }

    // MARK: Requests

    private enum Reply: Equatable {
        case text(String)
        /// The process has ended, or was ended because there was no reply in time.
        case ended, late
    }

    private mutating func ask(
        _ question: String?, _ script: PACScript, by deadline: ContinuousClock.Instant
    ) throws(UpstreamFailure) -> Reply {
        if socket < 0 { try start() }
        if loaded != script {
            loaded = nil
            let reply = try request(Array("load \(script.bytes.count)\n".utf8) + script.bytes, by: deadline)
            guard case .text = reply else { return reply }
            loaded = script
        }
        return if let question { try request(Array(question.utf8), by: deadline) } else { .text("") }
    }

    private mutating func request(
        _ bytes: [UInt8], by deadline: ContinuousClock.Instant
    ) throws(UpstreamFailure) -> Reply {
        guard send(bytes, by: deadline), let line = receive(by: deadline) else {
            let isLate = ContinuousClock.now >= deadline
            end()
            return isLate ? .late : .ended
        }
        let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let text = parts.count == 2 ? parts[1] : ""
        guard parts[0] == "ok" else { throw UpstreamFailure("error in the PAC file: \(text.shortened)") }
        return .text(text)
    }

    private func isReady(_ events: Int32, by deadline: ContinuousClock.Instant) -> Bool {
        while true {
            let left = deadline - .now
            guard left > .zero else { return false }
            var entry = pollfd(fd: socket, events: Int16(events), revents: 0)
            let count = poll(&entry, 1, Int32(clamping: left.wholeMilliseconds + 1))
            if count < 0 && errno == EINTR { continue }
            if count != 0 { return count > 0 }
        }
    }

    private func send(_ bytes: [UInt8], by deadline: ContinuousClock.Instant) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            guard isReady(POLLOUT, by: deadline) else { return false }
            let count = rest.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            if count < 0 && [EINTR, EAGAIN].contains(errno) { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Receives a line, without its end.
    private func receive(by deadline: ContinuousClock.Instant) -> String? {
        var line: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: Self.longestReply)
        while line.count < Self.longestReply {
            guard isReady(POLLIN, by: deadline) else { return nil }
            let count = recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count < 0 && [EINTR, EAGAIN].contains(errno) { continue }
            guard count > 0 else { return nil }
            line += buffer[..<count]
            if line.last == 0x0A { return String(decoding: line.dropLast(), as: UTF8.self) }
        }
        return nil
    }
}

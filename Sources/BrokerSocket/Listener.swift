internal import CPlatform
internal import EventLoop
internal import Glibc
internal import Logging
internal import WatchwordProtocol

/// Accepts connections on one socket. Pauses while descriptors or memory are short, retries after failures of
/// accept(2), and creates the socket again if its file was removed or replaced. If all of this fails, closes the socket
/// and calls `onFailure` once. Open connections are not affected.
///
/// Used on its loop only.
final class Listener: ReadinessHandler {
    /// The intervals and limits of accepting.
    struct Limits: Sendable {
        var retry = AcceptRetry.Limits()
        /// The interval at which the socket's file is checked.
        var fileCheck = Duration.seconds(2)
        /// The interval at which free descriptors are checked during a shortage. New clients wait in the kernel's queue
        /// meanwhile, so that connected clients have descriptors for their fetches.
        var shortage = Duration.milliseconds(100)
        /// The maximum number of connections accepted in one turn of the loop.
        var accepted = 4
    }

    private let server: ClientServer
    private let limits: Limits
    private let descriptors = Descriptors()
    private let onFailure: (SocketFailure) -> Void
    /// `nil` once this listener has stopped.
    private var socket: ListeningSocket?
    private var retry: AcceptRetry
    private var isShort = false
    private lazy var resuming = LoopTimer(on: server.loop) { [unowned self] in resume() }
    private lazy var fileCheck = LoopTimer(on: server.loop) { [unowned self] in checkFile() }

    init(
        _ socket: consuming ListeningSocket, for server: ClientServer, limits: Limits,
        onFailure: @escaping (SocketFailure) -> Void
    ) {
        self.socket = consume socket
        (self.server, self.limits, self.onFailure) = (server, limits, onFailure)
        retry = AcceptRetry(limits.retry)
    }

    func start() throws(SocketFailure) {
        guard let descriptor = socket?.descriptor else { return }
        // Set before the first connection is accepted, so that all input has sender credentials.
        guard watchword_ask_for_senders(descriptor, 1) == 0 else {
            throw .systemCall("setsockopt", path: "SO_PASSCRED", error: errno)
        }
        // A socket of the service manager may be in blocking mode.
        guard fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0,
            server.loop.watch(descriptor, .readable, self)
        else { throw .systemCall("epoll_ctl", path: "the listening socket", error: errno) }
        if fileCheck.deadline == nil { fileCheck.set(in: limits.fileCheck) }
    }

    /// Stops accepting connections, and removes the socket's file if this process created it.
    func stop() {
        fileCheck.cancel()
        resuming.cancel()
        guard let socket = socket.take() else { return }
        socket.removeFile()
        server.loop.forget(socket.descriptor)
        close(socket.descriptor)
    }

    // MARK: Accepting

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        for _ in 0..<limits.accepted {
            guard let listening = socket?.descriptor, let wasListening = socket?.wasListening,
                resuming.deadline == nil
            else { return }
            let accepted = watchword_accept(listening)
            guard accepted >= 0 else { return failed(errno) }
            retry.succeeded()
            server.admit(accepted, wasListening: wasListening)
            if !descriptors.hasRoom { return pause(because: "only reserved descriptors are left") }
        }
    }

    private func failed(_ error: Int32) {
        let reason = "accept: \(String(cString: strerror(error)))"
        switch error {
        case EAGAIN, EINTR, ECONNABORTED: return
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: pause(because: reason)
        default:
            switch retry.failed(at: server.loop.now) {
            case .stop: fail(.acceptFails(reason: reason))
            case .again(let pause):
                server.log.error("accept failed", metadata: ["reason": "\(reason)", "retry after": "\(pause)"])
                wait(pause)
            }
        }
    }

    /// Stops watching the socket until descriptors are free again. A listening socket with a waiting connection is
    /// always readable, so the loop would spin.
    private func pause(because reason: String) {
        isShort = true
        server.log.error("not accepting connections", metadata: ["reason": "\(reason)"])
        wait(limits.shortage)
    }

    private func wait(_ pause: Duration) {
        if let descriptor = socket?.descriptor { server.loop.forget(descriptor) }
        resuming.set(in: pause)
    }

    private func resume() {
        guard let descriptor = socket?.descriptor else { return }
        if isShort {
            guard descriptors.hasRoom else { return resuming.set(in: limits.shortage) }
            isShort = false
            server.log.notice("accepting connections again")
        }
        if !server.loop.watch(descriptor, .readable, self) { resuming.set(in: limits.shortage) }
    }

    // MARK: Socket file

    private func checkFile() {
        fileCheck.set(in: limits.fileCheck)
        guard let lost = socket?.lostPath else { return }
        guard lost.isOwn else { return fail(.fileLost(path: lost.path)) }
        server.log.error("socket removed or replaced; creating it again", metadata: ["path": "\(lost.path)"])
        do throws(SocketFailure) { try listenAgain(at: lost.path) } catch { fail(error) }
    }

    /// Closes the old socket, releases its lock, and creates a new socket at the same path.
    /// - Throws: if another broker has taken the path meanwhile, for example.
    private func listenAgain(at path: String) throws(SocketFailure) {
        resuming.cancel()
        isShort = false
        if let socket = socket.take() {
            server.loop.forget(socket.descriptor)
            close(socket.descriptor)
        }
        socket = try ListeningSocket(at: SocketLocation(explicit: path, environment: { _ in nil }, uid: getuid()))
        try start()
    }

    private func fail(_ failure: SocketFailure) {
        stop()
        server.log.critical("clients cannot connect any more", metadata: ["reason": "\(failure)"])
        onFailure(failure)
    }
}

/// Decides when accept(2) is retried after a failure other than a shortage of resources (such as EPERM from a security
/// module, EPROTO or ENETDOWN), and when retrying ends.
struct AcceptRetry {
    /// The reaction to a failure.
    enum Decision: Equatable {
        case again(after: Duration)
        /// All attempts within `Limits.limit` have failed. A new process may succeed.
        case stop
    }

    /// Pauses double from `firstPause` to `longestPause`. Retrying ends after a series of failures that lasts `limit`.
    struct Limits: Sendable {
        var firstPause = Duration.milliseconds(100)
        var longestPause = Duration.seconds(1)
        var limit = Duration.seconds(60)
        /// A failure begins a new series if the pause after the previous failure ended this long ago.
        var quiet = Duration.seconds(10)
    }

    private struct Streak {
        let since: ContinuousClock.Instant
        var last: ContinuousClock.Instant
        var pause: Duration
    }

    private let limits: Limits
    private var streak: Streak?

    init(_ limits: Limits = Limits()) { self.limits = limits }

    mutating func failed(at now: ContinuousClock.Instant) -> Decision {
        guard var current = streak, now - current.last < current.pause + limits.quiet else {
            streak = Streak(since: now, last: now, pause: limits.firstPause)
            return .again(after: limits.firstPause)
        }
        if now - current.since >= limits.limit { return .stop }
        current.last = now
        current.pause = min(current.pause * 2, limits.longestPause)
        streak = current
        return .again(after: current.pause)
    }

    /// Ends the series of failures, because a connection was accepted.
    mutating func succeeded() { streak = nil }
}

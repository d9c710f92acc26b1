internal import CPlatform
internal import EventLoop
internal import Glibc
internal import Logging
internal import WatchwordProtocol

/// Keeps one socket accepting: pauses while descriptors or memory are short, tries again when accept(2) has failed, and listens
/// again when the socket's file was removed or replaced. Connections that are open continue.
///
/// Used on its loop only. When it cannot continue it closes the socket and calls `onFailure` once.
final class Listener: ReadinessHandler {
    /// How accepting is kept up.
    struct Limits: Sendable {
        var retry = AcceptRetry.Limits()
        /// How often it is checked that the socket's file is in place.
        var fileCheck = Duration.seconds(2)
        /// With no room for another client: how long until it is looked again. They wait in the kernel's queue meanwhile, and those
        /// who are there keep what their fetches need.
        var shortage = Duration.milliseconds(100)
        /// Accepted in one turn of the loop; the others have their turn in between.
        var accepted = 4
    }

    private let server: ClientServer
    private let limits: Limits
    private let descriptors = Descriptors()
    private let onFailure: (SocketFailure) -> Void
    /// `nil` once this has stopped.
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

    /// Begins accepting.
    func start() throws(SocketFailure) {
        guard let descriptor = socket?.descriptor else { return }
        // Before the first connection is accepted, so that nothing comes without its sender.
        guard watchword_ask_for_senders(descriptor, 1) == 0 else {
            throw .systemCall("setsockopt", path: "SO_PASSCRED", error: errno)
        }
        // The service manager's may be one on which accept(2) waits.
        guard fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0,
            server.loop.watch(descriptor, .readable, self)
        else { throw .systemCall("epoll_ctl", path: "the listening socket", error: errno) }
        if fileCheck.deadline == nil { fileCheck.set(in: limits.fileCheck) }
    }

    /// Removes the socket's file, if it was made here, and ends accepting.
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
            if !descriptors.hasRoom { return pause(because: "only the reserve of descriptors is left") }
        }
    }

    private func failed(_ error: Int32) {
        let reason = "accept: \(String(cString: strerror(error)))"
        switch error {
        case EAGAIN, EINTR, ECONNABORTED: return
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: pause(because: reason)
        default:
            switch retry.failed(at: server.loop.now) {
            case .giveUp: fail(.acceptFails(reason: reason))
            case .again(let pause):
                server.log.error("accept failed", metadata: ["reason": "\(reason)", "again after": "\(pause)"])
                wait(pause)
            }
        }
    }

    /// A listening socket with a connection waiting is always readable: without descriptors left the loop would do nothing else.
    private func pause(because reason: String) {
        isShort = true
        server.log.error("no connections are accepted", metadata: ["reason": "\(reason)"])
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
            server.log.notice("connections are accepted again")
        }
        if !server.loop.watch(descriptor, .readable, self) { resuming.set(in: limits.shortage) }
    }

    // MARK: The socket's file

    private func checkFile() {
        fileCheck.set(in: limits.fileCheck)
        guard let lost = socket?.lostPath else { return }
        guard lost.isOwn else { return fail(.fileLost(path: lost.path)) }
        server.log.error("the socket was removed or replaced, and is made again", metadata: ["path": "\(lost.path)"])
        do throws(SocketFailure) { try listenAgain(at: lost.path) } catch { fail(error) }
    }

    /// The lock goes with the old socket: another broker may have taken the path meanwhile.
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

internal import CPlatform
internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import WatchwordProtocol

/// Keeps one socket accepting: tries again when accept(2) has failed, and listens again when the socket's file was removed or
/// replaced. Connections that are open continue.
///
/// Used on its loop only. When it cannot continue it closes the socket and calls `onFailure` once.
final class Listener {
    /// How accepting is kept up.
    struct Limits: Sendable {
        var retry = AcceptRetry.Limits()
        /// How often it is checked that the socket's file is in place.
        var fileCheck = Duration.seconds(2)
    }

    private let bootstrap: ServerBootstrap
    private let loop: any EventLoop
    private let limits: Limits
    private let log: Logger
    private let onFailure: (SocketFailure) -> Void
    /// `nil` once this has stopped.
    private var socket: ListeningSocket?
    private var channel: (any Channel)?
    private var retry: AcceptRetry
    private var lastError = "the socket was closed"
    private var fileCheck: RepeatedTask?

    /// - Parameter bootstrap: of `loop`; it has no initializer of the server's channel yet.
    init(
        _ socket: consuming ListeningSocket, bootstrap: ServerBootstrap, loop: any EventLoop, limits: Limits,
        log: Logger,
        onFailure: @escaping (SocketFailure) -> Void
    ) {
        self.socket = consume socket
        self.bootstrap = bootstrap
        self.loop = loop
        self.limits = limits
        self.log = log
        self.onFailure = onFailure
        retry = AcceptRetry(limits.retry)
    }

    /// Begins accepting. The socket's own descriptor stays open while SwiftNIO opens and closes copies of it.
    func start() -> EventLoopFuture<Void> {
        let this = NIOLoopBound(self, eventLoop: loop)
        _ = bootstrap.serverChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                let listener = this.value
                let gate = AcceptGate(log: listener.log) {
                    listener.retry.succeeded()
                } failed: {
                    listener.lastError = "\($0)"
                }
                try channel.pipeline.syncOperations.addHandler(gate)
            }
        }
        let period = TimeAmount(limits.fileCheck)
        fileCheck = loop.scheduleRepeatedTask(initialDelay: period, delay: period) { _ in this.value.checkFile() }
        return open()
    }

    /// Removes the socket's file, if it was made here, and ends accepting.
    func stop() {
        guard let socket = socket.take() else { return }
        socket.removeFile()
        fileCheck?.cancel()
        channel?.close(promise: nil)
        close(socket.descriptor)
    }

    private func open() -> EventLoopFuture<Void> {
        guard let listening = socket?.descriptor else { return loop.makeSucceededVoidFuture() }
        // Before the first connection is accepted, so that nothing comes without its sender.
        guard watchword_ask_for_senders(listening, 1) == 0 else {
            return loop.makeFailedFuture(SocketFailure.systemCall("setsockopt", path: "SO_PASSCRED", error: errno))
        }
        let copy = fcntl(listening, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { return loop.makeFailedFuture(IOError(errnoCode: errno, reason: "dup")) }
        let this = NIOLoopBound(self, eventLoop: loop)
        return bootstrap.withBoundSocket(copy).map { this.value.opened($0) }
    }

    private func opened(_ channel: any Channel) {
        guard socket != nil else { return channel.close(promise: nil) }
        self.channel = channel
        socket?.setBacklog()
        let this = NIOLoopBound(self, eventLoop: loop)
        channel.closeFuture.whenComplete { _ in this.value.closed(ObjectIdentifier(channel)) }
    }

    /// A channel that was replaced, or closed by `stop`, is not opened again.
    private func closed(_ closed: ObjectIdentifier) {
        guard socket != nil, let channel, ObjectIdentifier(channel) == closed else { return }
        self.channel = nil
        failedToAccept()
    }

    private func failedToAccept() {
        switch retry.failed(at: .now) {
        case .giveUp: fail(.acceptFails(reason: lastError))
        case .again(let pause):
            log.error("accept failed", metadata: ["reason": "\(lastError)", "again after": "\(pause)"])
            let this = NIOLoopBound(self, eventLoop: loop)
            loop.scheduleTask(in: TimeAmount(pause)) { this.value.reopen() }
        }
    }

    private func reopen() {
        guard socket != nil, channel == nil else { return }
        let this = NIOLoopBound(self, eventLoop: loop)
        open().whenFailure { error in
            this.value.lastError = "\(error)"
            this.value.failedToAccept()
        }
    }

    private func checkFile() {
        guard let lost = socket?.lostPath else { return }
        guard lost.isOwn else { return fail(.fileLost(path: lost.path)) }
        log.error("the socket was removed or replaced, and is made again", metadata: ["path": "\(lost.path)"])
        listenAgain(at: SocketLocation(explicit: lost.path, environment: { _ in nil }, uid: getuid()))
    }

    /// The lock goes with the old socket: another broker may have taken the path meanwhile.
    private func listenAgain(at location: SocketLocation) {
        let old = channel
        channel = nil
        old?.close(promise: nil)
        if let socket = socket.take() { close(socket.descriptor) }
        do throws(SocketFailure) {
            socket = try ListeningSocket(at: location)
        } catch {
            return fail(error)
        }
        reopen()
    }

    private func fail(_ failure: SocketFailure) {
        stop()
        fileCheck?.cancel()  // `stop` does nothing where there is no socket any more
        log.critical("clients cannot connect any more", metadata: ["reason": "\(failure)"])
        onFailure(failure)
    }
}

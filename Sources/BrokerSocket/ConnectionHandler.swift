internal import Broker
internal import CPlatform
internal import Glibc
internal import Logging
internal import NIOCore

/// One client's socket: hands what it reads to the service, and sends what the service says. Lives on the event loop.
///
/// Nothing is read while too much waits to be sent; too much for good ends the connection.
final class ConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let service: any ConnectionService
    private let peer: PeerIdentity
    private let watch: SenderWatch
    private let limits: ServerLimits
    private let log: Logger
    private var context: ChannelHandlerContext?
    private var id: ConnectionID?
    private var isFlushPlanned = false
    private var isClosing = false
    /// What was sent in this turn of the loop: small replies by the thousand, each in memory of its own, would take five times
    /// what they are.
    private var collected = ByteBuffer()
    /// All that was to be sent.
    private var sentBytes = 0
    private var isWatchingReader = false
    private var isTellingLater = false

    init(
        service: any ConnectionService, peer: PeerIdentity, watch: SenderWatch, limits: ServerLimits, log: Logger
    ) {
        self.service = service
        self.peer = peer
        self.watch = watch
        self.limits = limits
        self.log = log
    }

    // MARK: From the socket

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        id = service.connectionOpened(SocketLink(handler: NIOLoopBound(self, eventLoop: context.eventLoop)), peer: peer)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let id, !isClosing else { return }
        guard watch.isOfPeer else { return endStrangersConnection(context) }
        let buffer = unwrapInboundIn(data)
        buffer.withUnsafeReadableBytes { bytes in
            adjustReading(to: bytes)
            service.received(bytes, from: id)
            // A message may hold a password. Nobody reads these bytes again: the next read overwrites them.
            watchword_wipe(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count)
        }
        watchword_clear_stack()
    }

    /// What it has sent is not looked at.
    private func endStrangersConnection(_ context: ChannelHandlerContext) {
        log.warning(
            "another process than the one that connected has sent something; the connection ends",
            metadata: ["pid": "\(peer.pid)"])
        isClosing = true
        context.close(promise: nil)
    }

    /// Where no line ends there is one large message, which costs less the more of it is read at once.
    private func adjustReading(to bytes: UnsafeRawBufferPointer) {
        watch.readsMuch = bytes.count >= limits.readBytes && memchr(bytes.baseAddress!, 0x0A, bytes.count) == nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.inputClosed) = event as? ChannelEvent { endInput(context) }
        context.fireUserInboundEventTriggered(event)
    }

    /// A peer that has only shut down its writing side is still owed its replies; one that is gone is told apart from it here,
    /// before anything is done for it that it does not want any more.
    private func endInput(_ context: ChannelHandlerContext) {
        guard let id else { return }
        guard PeerHangUp.isSeen(on: context.channel) else { return service.inputEnded(id) }
        forget()
        context.close(promise: nil)
    }

    private func forget() {
        if let id { service.connectionClosed(id) }
        id = nil
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        let isReading = context.channel.isWritable
        context.channel.setOption(.autoRead, value: isReading).whenFailure { _ in }
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        forget()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        log.debug("a connection ends with an error", metadata: ["error": "\(error)"])
        context.close(promise: nil)
    }

    // MARK: To the socket

    /// What is sent in one turn of the loop goes out together.
    func send(_ bytes: [UInt8]) {
        guard let context, !isClosing else { return }
        sentBytes += bytes.count
        if bytes.count < Self.collectedBytes {
            collected.writeBytes(bytes)
        } else {
            writeCollected()
            context.write(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        }
        guard !isFlushPlanned else { return }
        isFlushPlanned = true
        context.eventLoop.assumeIsolated().execute { self.flush() }
    }

    private static let collectedBytes = 4096

    private func writeCollected() {
        guard let context, collected.readableBytes > 0 else { return }
        context.write(wrapOutboundOut(collected), promise: nil)
        collected = ByteBuffer()
    }

    private func flush() {
        isFlushPlanned = false
        guard let context else { return }
        writeCollected()
        context.flush()
        let waiting = waitingBytes
        guard waiting <= limits.outgoingQueue else { return disconnect(waiting) }
        tell(waiting)
        followReader()
    }

    private func tell(_ waiting: Int) {
        if let id { service.leftUnread(waiting, id) }
    }

    /// As long as something waits: also behind the last message, after which the connection is to end.
    private func followReader() {
        guard waitingBytes > 0 else { return }
        watchReader()
        tellLater()
    }

    /// Says how much is left, from time to time: nobody tells when the kernel takes something.
    private func tellLater() {
        guard !isTellingLater, let context else { return }
        isTellingLater = true
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.tellingPause) {
            self.isTellingLater = false
            let waiting = self.waitingBytes
            self.tell(waiting)
            if waiting > 0 { self.tellLater() }
        }
    }

    private static let tellingPause = TimeAmount.milliseconds(50)

    var waitingBytes: Int {
        guard let context else { return 0 }
        return collected.readableBytes + ((try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0)
    }

    /// Looks from time to time how much of what waits was taken, until nothing waits any more.
    private func watchReader() {
        guard !isWatchingReader, let context else { return }
        isWatchingReader = true
        let taken = sentBytes - waitingBytes
        context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.readerPause)) {
            self.isWatchingReader = false
            let waiting = self.waitingBytes
            guard waiting > 0 else { return }
            if self.sentBytes - waiting - taken < self.limits.readerBytes {
                self.disconnect(waiting)
            } else {
                self.watchReader()
            }
        }
    }

    func abandon() { disconnect(waitingBytes) }

    private func disconnect(_ waiting: Int) {
        log.warning(
            "a client does not read and is disconnected",
            metadata: ["pid": "\(peer.pid)", "waitingBytes": "\(waiting)"])
        isClosing = true
        context?.close(promise: nil)
    }

    /// Behind everything sent so far. The channel's own descriptor is closed; the connection lives on in the copy.
    func handOver(after bytes: [UInt8], to taker: @escaping @Sendable (Int32) -> Void) {
        guard let context, !isClosing else { return }
        isClosing = true
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        writeCollected()
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: written)
        followReader()
        let channel = context.channel
        written.futureResult.assumeIsolated().whenComplete { result in
            if case .success = result {
                let operations = channel.pipeline.syncOperations
                let socket = try? operations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { socket in
                    // What comes now is a body, and the token was for whoever has it.
                    watchword_ask_for_senders(socket, 0) == 0 ? watchword_duplicate(socket) : -1
                }
                if let socket = socket ?? nil, socket >= 0 { taker(socket) }
            }
            channel.close(promise: nil)
        }
    }

    /// Behind everything sent so far. The flush of this turn comes first.
    func close() {
        guard let context, !isClosing else { return }
        isClosing = true
        writeCollected()
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
        followReader()
        let channel = context.channel
        written.futureResult.whenComplete { _ in channel.close(promise: nil) }
    }
}

/// What the broker holds of a connection.
struct SocketLink: ClientLink {
    let handler: NIOLoopBound<ConnectionHandler>

    func send(_ bytes: [UInt8]) { handler.value.send(bytes) }

    var waitingBytes: Int { handler.value.waitingBytes }

    func close() { handler.value.close() }

    func abandon() { handler.value.abandon() }

    func handOver(after bytes: [UInt8], to taker: @escaping @Sendable (Int32) -> Void) {
        handler.value.handOver(after: bytes, to: taker)
    }
}

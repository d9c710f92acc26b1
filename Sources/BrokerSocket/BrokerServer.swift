public import Broker
internal import CPlatform
internal import Glibc
public import Logging
public import NIOCore
internal import NIOPosix
internal import Synchronization

/// Accepts connections on one event loop, and gives each that may talk to the broker a handler of its own.
public struct BrokerServer: Sendable {
    private let listener: NIOLoopBound<Listener>

    /// Adopts `socket`. `service` is called on `loop` only.
    ///
    /// - Parameter onFailure: called, on `loop`, when no more connections can be accepted; those that are open continue.
    public static func start(
        on loop: any EventLoop, socket: consuming ListeningSocket, entrance: Entrance = .main,
        service: any ConnectionService, policy: PeerPolicy, limits: ServerLimits = ServerLimits(),
        census: ConnectionCensus = ConnectionCensus(), log: Logger,
        onFailure: @escaping @Sendable (SocketFailure) -> Void
    ) async throws -> BrokerServer {
        try await start(
            on: loop, socket: socket, entrance: entrance, service: service, policy: policy, limits: limits,
            listening: Listener.Limits(), census: census, log: log, onFailure: onFailure)
    }

    static func start(
        on loop: any EventLoop, socket: consuming ListeningSocket, entrance: Entrance, service: any ConnectionService,
        policy: PeerPolicy, limits: ServerLimits, listening: Listener.Limits, census: ConnectionCensus, log: Logger,
        onFailure: @escaping @Sendable (SocketFailure) -> Void
    ) async throws -> BrokerServer {
        let wasListening = socket.wasListening
        let admission: @Sendable (any Channel) throws -> Void = { channel in
            var (peer, watch) = try admit(
                channel, policy: policy, limits: limits, census: census, wasListening: wasListening, log: log)
            peer.entrance = entrance
            try channel.syncOptions?.setOption(.recvAllocator, value: WatchedBuffers(watch: watch, limits: limits))
            let handler = ConnectionHandler(service: service, peer: peer, watch: watch, limits: limits, log: log)
            try channel.pipeline.syncOperations.addHandler(handler)
        }
        let handover = Mutex<ListeningSocket?>(socket)
        let listener = try await loop.submit {
            guard let socket = handover.withLock({ $0.take() }) else { throw CancellationError() }
            let listener = Listener(
                socket, bootstrap: bootstrap(on: loop, limits, admission), loop: loop, limits: listening, log: log,
                onFailure: onFailure)
            return NIOLoopBound(listener, eventLoop: loop)
        }.get()
        try await loop.flatSubmit { listener.value.start() }.get()
        return BrokerServer(listener: listener)
    }

    /// Removes the socket's file, if it was made here, and ends accepting. Connections that are open continue.
    public func stop() async {
        let listener = listener
        try? await listener.eventLoop.submit { listener.value.stop() }.get()
    }

    private static func bootstrap(
        on loop: any EventLoop, _ limits: ServerLimits, _ admission: @escaping @Sendable (any Channel) throws -> Void
    ) -> ServerBootstrap {
        ServerBootstrap(group: loop)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // What one client sends at once keeps the others waiting for no longer than so few bytes of it take.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(
                .writeBufferWaterMark, value: .init(low: limits.lowWaterMark, high: limits.highWaterMark)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try admission(channel) }
            }
    }

    /// Before one byte is read: close-on-exec, who it is, and whether there is room. What is thrown closes the connection.
    private static func admit(
        _ channel: any Channel, policy: PeerPolicy, limits: ServerLimits, census: ConnectionCensus,
        wasListening: Bool, log: Logger
    ) throws -> (PeerIdentity, SenderWatch) {
        let operations = channel.pipeline.syncOperations
        let socket = try operations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 } ?? -1
        // Whether an accepted socket takes over what its listener was asked for differs from kernel to kernel.
        let isReady = watchword_set_close_on_exec(socket) == 0 && watchword_ask_for_senders(socket, 1) == 0
        let peer = isReady ? PeerIdentity(ofSocket: socket) : nil
        guard let known = peer, policy.admits(known) else {
            log.warning("a connection was refused", metadata: ["uid": "\(peer?.uid ?? UInt32.max)"])
            throw Refusal.peer
        }
        guard census.admit(known.pid, limits) else {
            log.warning("too many connections", metadata: ["limit": "\(limits.connections)", "pid": "\(known.pid)"])
            throw Refusal.noRoom
        }
        channel.closeFuture.whenComplete { _ in census.dismiss(known.pid) }
        return (known, SenderWatch(socket: socket, pid: known.pid, wasListening: wasListening))
    }

    private enum Refusal: Error {
        case peer, noRoom
    }
}

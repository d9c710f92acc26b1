public import Broker
internal import CPlatform
internal import Glibc
public import Logging
public import NIOCore
internal import NIOPosix

/// Accepts connections on one event loop, and gives each that may talk to the broker a handler of its own.
public struct BrokerServer: Sendable {
    private let listener: any Channel

    /// Adopts the descriptor of `socket`. `service` is called on `loop` only.
    public static func start(
        on loop: any EventLoop, socket: borrowing ListeningSocket, entrance: Entrance = .main,
        service: any ConnectionService, policy: PeerPolicy, limits: ServerLimits = ServerLimits(),
        census: ConnectionCensus = ConnectionCensus(), log: Logger
    ) async throws -> BrokerServer {
        let wasListening = socket.wasListening
        // Before the first connection is accepted, so that nothing comes without its sender.
        guard watchword_ask_for_senders(socket.descriptor, 1) == 0 else {
            throw SocketFailure.systemCall("setsockopt", path: "SO_PASSCRED", error: errno)
        }
        let bootstrap = ServerBootstrap(group: loop)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptGate(log: log))
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // What one client sends at once keeps the others waiting for no longer than so few bytes of it take.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(
                .writeBufferWaterMark, value: .init(low: limits.lowWaterMark, high: limits.highWaterMark)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    var (peer, watch) = try admit(
                        channel, policy: policy, limits: limits, census: census, wasListening: wasListening, log: log)
                    peer.entrance = entrance
                    try channel.syncOptions?.setOption(
                        .recvAllocator, value: WatchedBuffers(watch: watch, limits: limits))
                    let handler = ConnectionHandler(
                        service: service, peer: peer, watch: watch, limits: limits, log: log)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
        let listener = try await bootstrap.withBoundSocket(socket.descriptor).get()
        socket.setBacklog()
        return BrokerServer(listener: listener)
    }

    /// Ends accepting. Connections that are open go on.
    public func stop() async {
        try? await listener.close().get()
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

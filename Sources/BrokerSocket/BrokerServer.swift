public import Broker
internal import CPlatform
public import Logging
public import NIOCore
internal import NIOPosix

/// Accepts connections on one event loop, and gives each that may talk to the broker a handler of its own.
public struct BrokerServer: Sendable {
    private let listener: any Channel

    /// Adopts the descriptor of `socket`. `service` is called on `loop` only.
    public static func start(
        on loop: any EventLoop, socket: borrowing ListeningSocket, entrance: Entrance = .main,
        service: any ConnectionService, policy: PeerPolicy, limits: ServerLimits = ServerLimits(), log: Logger
    ) async throws -> BrokerServer {
        let census = NIOLoopBoundBox.makeBoxSendingValue(0, eventLoop: loop)
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
                .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: limits.readBytes)
            )
            .childChannelOption(
                .writeBufferWaterMark, value: .init(low: limits.lowWaterMark, high: limits.highWaterMark)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    var peer = try admit(channel, policy: policy, limits: limits, census: census, log: log)
                    peer.entrance = entrance
                    let handler = ConnectionHandler(service: service, peer: peer, limits: limits, log: log)
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
        _ channel: any Channel, policy: PeerPolicy, limits: ServerLimits, census: NIOLoopBoundBox<Int>, log: Logger
    ) throws -> PeerIdentity {
        let peer = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            watchword_set_close_on_exec($0) == 0 ? PeerIdentity(ofSocket: $0) : nil
        }
        guard let known = peer ?? nil, policy.admits(known) else {
            log.warning("a connection was refused", metadata: ["uid": "\(peer??.uid ?? UInt32.max)"])
            throw Refusal.peer
        }
        guard census.value < limits.connections else {
            log.warning("too many connections", metadata: ["limit": "\(limits.connections)", "pid": "\(known.pid)"])
            throw Refusal.noRoom
        }
        census.value += 1
        channel.closeFuture.whenComplete { _ in census.value -= 1 }
        return known
    }

    private enum Refusal: Error {
        case peer, noRoom
    }
}

public import Broker
public import EventLoop
public import Logging

/// Accepts connections on an event loop, checks their peers, and passes their input to a service. Used on its loop
/// only.
public final class BrokerServer {
    private let listener: Listener

    /// Starts accepting connections. Takes ownership of `socket`, and calls `service` on `loop`.
    ///
    /// - Parameter onFailure: called if connections can no longer be accepted; open connections continue.
    /// - Throws: `SocketFailure` if accepting cannot start.
    public convenience init(
        on loop: EventLoop, socket: consuming ListeningSocket, socketKind: SocketKind = .main,
        service: any ConnectionService, policy: PeerPolicy, limits: ServerLimits = ServerLimits(),
        counter: ConnectionCounter = ConnectionCounter(), log: Logger, onFailure: @escaping (SocketFailure) -> Void
    ) throws(SocketFailure) {
        try self.init(
            on: loop, socket: socket, socketKind: socketKind, service: service, policy: policy, limits: limits,
            listening: Listener.Limits(), counter: counter, log: log, onFailure: onFailure)
    }

    init(
        on loop: EventLoop, socket: consuming ListeningSocket, socketKind: SocketKind, service: any ConnectionService,
        policy: PeerPolicy, limits: ServerLimits, listening: Listener.Limits, counter: ConnectionCounter, log: Logger,
        onFailure: @escaping (SocketFailure) -> Void
    ) throws(SocketFailure) {
        let server = ClientServer(on: loop, service, socketKind, policy, limits, counter, log)
        listener = Listener(socket, for: server, limits: listening, onFailure: onFailure)
        try listener.start()
    }

    /// Stops accepting, and removes the socket's file if this process created it. Open connections continue.
    public func stop() { listener.stop() }
}

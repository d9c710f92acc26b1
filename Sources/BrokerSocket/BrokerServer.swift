public import Broker
public import EventLoop
public import Logging

/// Accepts connections on an event loop, and gives each that may talk to the broker a socket of its own. Used on its loop only.
public final class BrokerServer {
    private let listener: Listener

    /// Adopts `socket`, and calls `service`, on `loop`.
    ///
    /// - Parameter onFailure: called when no more connections can be accepted; those that are open continue.
    /// - Throws: `SocketFailure` when nobody can be accepted.
    public convenience init(
        on loop: EventLoop, socket: consuming ListeningSocket, entrance: Entrance = .main,
        service: any ConnectionService, policy: PeerPolicy, limits: ServerLimits = ServerLimits(),
        census: ConnectionCensus = ConnectionCensus(), log: Logger, onFailure: @escaping (SocketFailure) -> Void
    ) throws(SocketFailure) {
        try self.init(
            on: loop, socket: socket, entrance: entrance, service: service, policy: policy, limits: limits,
            listening: Listener.Limits(), census: census, log: log, onFailure: onFailure)
    }

    init(
        on loop: EventLoop, socket: consuming ListeningSocket, entrance: Entrance, service: any ConnectionService,
        policy: PeerPolicy, limits: ServerLimits, listening: Listener.Limits, census: ConnectionCensus, log: Logger,
        onFailure: @escaping (SocketFailure) -> Void
    ) throws(SocketFailure) {
        let server = ClientServer(on: loop, service, entrance, policy, limits, census, log)
        listener = Listener(socket, for: server, limits: listening, onFailure: onFailure)
        try listener.start()
    }

    /// Removes the socket's file, if it was made here, and ends accepting. Connections that are open continue.
    public func stop() { listener.stop() }
}

public import Broker
internal import CPlatform
public import EventLoop
internal import Glibc
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

/// Admits the clients of a listening socket, and owns the state that they share. Used on the loop only.
final class ClientServer {
    let loop: EventLoop
    let service: any ConnectionService
    let limits: ServerLimits
    let log: Logger
    /// The read buffer, shared by all clients.
    let buffer: UnsafeMutableRawBufferPointer
    private let policy: PeerPolicy
    private let counter: ConnectionCounter
    private let socketKind: SocketKind

    init(
        on loop: EventLoop, _ service: any ConnectionService, _ socketKind: SocketKind, _ policy: PeerPolicy,
        _ limits: ServerLimits, _ counter: ConnectionCounter, _ log: Logger
    ) {
        (self.loop, self.service, self.socketKind, self.policy) = (loop, service, socketKind, policy)
        (self.limits, self.counter, self.log) = (limits, counter, log)
        buffer = .allocate(byteCount: max(limits.readBytes, limits.largeReadBytes), alignment: 16)
    }

    deinit { buffer.deallocate() }

    /// Admits a connection if its peer is allowed and the connection limits are not exceeded; otherwise closes it
    /// without reading or sending anything.
    /// - Parameters:
    ///   - descriptor: the accepted socket; this method takes ownership.
    ///   - wasListening: see `PeerInput`.
    func admit(_ descriptor: Int32, wasListening: Bool) {
        // Set again, because not every kernel copies SO_PASSCRED from the listening socket to an accepted one.
        let peer = watchword_ask_for_senders(descriptor, 1) == 0 ? PeerIdentity(ofSocket: descriptor) : nil
        guard var peer, policy.admits(peer) else {  // guard: uid-asked
            log.warning("connection refused: peer not allowed", metadata: ["uid": "\(peer?.uid ?? UInt32.max)"])
            close(descriptor)
            return
        }
        guard counter.admit(peer.pid, limits) else {
            log.warning("too many connections", metadata: ["limit": "\(limits.connections)", "pid": "\(peer.pid)"])
            close(descriptor)
            return
        }
        peer.socketKind = socketKind
        // Counted after the process was identified. If the number is not known, all may be early.
        let early = watchword_waiting_input(descriptor)
        peer.earlyBytes = early < 0 ? .max : Int(early)
        ClientSocket(self, descriptor: descriptor, peer: peer, wasListening: wasListening).open()
    }

    func closed(_ pid: Int32) { counter.dismiss(pid) }
}

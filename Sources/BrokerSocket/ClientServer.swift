internal import Broker
internal import CPlatform
internal import EventLoop
internal import Glibc
internal import Logging

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

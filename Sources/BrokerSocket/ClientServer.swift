internal import Broker
internal import CPlatform
internal import EventLoop
internal import Glibc
internal import Logging

/// What all clients of one listening socket have in common, and the door through which they come. Used on the loop only.
final class ClientServer {
    let loop: EventLoop
    let service: any ConnectionService
    let limits: ServerLimits
    let log: Logger
    /// For what is being read.
    let buffer: UnsafeMutableRawBufferPointer
    private let policy: PeerPolicy
    private let census: ConnectionCensus
    private let entrance: Entrance

    init(
        on loop: EventLoop, _ service: any ConnectionService, _ entrance: Entrance, _ policy: PeerPolicy,
        _ limits: ServerLimits, _ census: ConnectionCensus, _ log: Logger
    ) {
        (self.loop, self.service, self.entrance, self.policy) = (loop, service, entrance, policy)
        (self.limits, self.census, self.log) = (limits, census, log)
        buffer = .allocate(byteCount: max(limits.readBytes, limits.largeReadBytes), alignment: 16)
    }

    deinit { buffer.deallocate() }

    /// Who it is, and whether there is room, before one byte is read. Who is refused is closed without a word.
    /// - Parameters:
    ///   - descriptor: owned from now on.
    ///   - wasListening: see `PeerInput`.
    func admit(_ descriptor: Int32, wasListening: Bool) {
        // Whether an accepted socket takes over what its listener was asked for differs from kernel to kernel.
        let peer = watchword_ask_for_senders(descriptor, 1) == 0 ? PeerIdentity(ofSocket: descriptor) : nil
        guard var peer, policy.admits(peer) else {
            log.warning("a connection was refused", metadata: ["uid": "\(peer?.uid ?? UInt32.max)"])
            close(descriptor)
            return
        }
        guard census.admit(peer.pid, limits) else {
            log.warning("too many connections", metadata: ["limit": "\(limits.connections)", "pid": "\(peer.pid)"])
            close(descriptor)
            return
        }
        peer.entrance = entrance
        ClientSocket(self, descriptor: descriptor, peer: peer, wasListening: wasListening).open()
    }

    func closed(_ pid: Int32) { census.dismiss(pid) }
}

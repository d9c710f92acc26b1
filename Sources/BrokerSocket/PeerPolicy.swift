public import Broker
internal import CPlatform

/// Decides which processes may connect.
public struct PeerPolicy: Sendable {
    /// The user of the broker.
    public let uid: UInt32

    public init(uid: UInt32) { self.uid = uid }

    /// Admits only processes of `uid` that the kernel can identify. For others, SO_PEERCRED reports PID 0 or UID −1
    /// instead of an error.
    public func admits(_ peer: PeerIdentity) -> Bool {  // guard: uid
        peer.pid > 0 && peer.uid != UInt32.max && peer.uid == uid
    }
}

extension PeerIdentity {
    /// Identifies the process that connected this socket. Returns `nil` if the kernel does not report its credentials.
    init?(ofSocket descriptor: Int32) {
        var pid: Int32 = 0
        var uid = UInt32.max
        guard watchword_peer_credentials(descriptor, &pid, &uid) == 0 else { return nil }
        self.init(pid: pid, uid: uid)
        if pid > 0 { identify(socket: descriptor) }
    }

    /// Sets what proc(5) says of the process.
    /// - Parameter socket: the broker's end of its connection through a Unix socket; `nil` for any other process.
    mutating func identify(socket: Int32?) {
        (process, subject, executable) = ConnectedProcess.accept(socket: socket, pid: pid)
    }
}

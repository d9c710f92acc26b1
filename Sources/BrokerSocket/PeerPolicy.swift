public import Broker
internal import CPlatform

/// Who may talk to the broker.
public struct PeerPolicy: Sendable {
    /// The user whose broker it is.
    public let uid: UInt32

    public init(uid: UInt32) { self.uid = uid }

    /// Nobody else, and nobody whom the kernel cannot name: SO_PEERCRED has no error for that, only pid 0 or uid −1.
    public func admits(_ peer: PeerIdentity) -> Bool {
        peer.pid > 0 && peer.uid != UInt32.max && peer.uid == uid
    }
}

extension PeerIdentity {
    /// The process that connected this socket; `nil` when the kernel does not say.
    init?(ofSocket descriptor: Int32) {
        var pid: Int32 = 0
        var uid = UInt32.max
        guard watchword_peer_credentials(descriptor, &pid, &uid) == 0 else { return nil }
        self.init(pid: pid, uid: uid)
        guard pid > 0 else { return }
        let (process, subject, executable) = PeerProcess.accept(socket: descriptor, pid: pid)
        (self.subject, self.executable) = (subject, executable)
        subjectNow = { process.subjectNow(after: subject) }
        executableNow = { process.executableNow() }
        runsFile = { process.runsFile($0) }
    }
}

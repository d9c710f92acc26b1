public import Broker
internal import CPlatform
internal import Glibc

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
        self.init(pid: pid, uid: uid, executable: Self.executable(of: pid))
    }

    /// Read while the peer has just connected: later its number may belong to somebody else.
    private static func executable(of pid: Int32) -> String? {
        guard pid > 0 else { return nil }
        let capacity = Int(PATH_MAX)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer -> String? in
            let count = readlink("/proc/\(pid)/exe", buffer.baseAddress!, capacity)
            guard count > 0, count < capacity else { return nil }
            return String(validating: buffer[..<count].lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}

internal import Glibc
internal import WatchwordProtocol

/// Why the broker cannot listen. Each says what happened, where, and what to do.
public enum SocketFailure: Error, Equatable, Sendable {
    case pathTooLong(path: String, limit: Int)
    case folderNotUsable(folder: String, reason: String)
    /// Another user could put a socket in the place of the broker's.
    case folderReplaceable(folder: String, reason: String)
    /// `pid` as the other broker wrote it down; `nil` when it has not.
    case alreadyRunning(path: String, pid: Int?)
    /// Something that is no socket lies where the socket should be; it is left alone.
    case notASocket(path: String)
    case inheritedDescriptorNotUsable(reason: String)
    /// Of `$NOTIFY_SOCKET`.
    case notificationSocketNotUsable
    /// The socket of the service manager cannot be reached any more, and only the manager can make it again.
    case fileLost(path: String)
    /// accept(2) has failed for too long.
    case acceptFails(reason: String)
    case systemCall(String, path: String, error: Int32)
}

extension SocketFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .pathTooLong(let path, let limit):
            "The path of the socket, \(path), is longer than \(limit) bytes. Choose a shorter one with --socket."
        case .folderNotUsable(let folder, let reason):
            "The folder \(folder) cannot hold the socket: \(reason). It has to belong to you alone (mode 0700)."
        case .folderReplaceable(let folder, let reason):
            "cannot listen safely: the directory \(folder) \(reason); run \"chmod go-w\" on it, or choose another path with --socket"
        case .alreadyRunning(let path, let pid):
            "Another broker\(pid.map { ", process \($0)," } ?? "") already listens at \(path). It can be used as it is."
        case .notASocket(let path):
            "At \(path) lies something that is not a socket. Move it away, or choose another path with --socket."
        case .inheritedDescriptorNotUsable(let reason):
            "The socket handed over by the service manager cannot be used: \(reason)."
        case .notificationSocketNotUsable:
            "NOTIFY_SOCKET names no Unix socket: it has to be an absolute path, or a name behind an @, that fits an address."
        case .fileLost(let path):
            "the socket \(path) was removed or replaced, and belongs to the service manager; run \"systemctl --user restart watchword.socket\""
        case .acceptFails(let reason):
            "cannot accept connections: \(reason.shortened); start the broker again"
        case .systemCall(let call, let path, let error):
            "\(call) failed at \(path): \(String(cString: strerror(error)))."
        }
    }
}

internal import Glibc
internal import WatchwordProtocol

/// The reason why the broker cannot listen.
public enum SocketFailure: Error, Equatable, Sendable {
    case pathTooLong(path: String, limit: Int)
    case folderNotUsable(folder: String, reason: String)
    /// Another user could replace the broker's socket.
    case folderReplaceable(folder: String, reason: String)
    /// `pid` is read from the lock file; `nil` if the file does not contain one.
    case alreadyRunning(path: String, pid: Int?)
    /// The file at the path of the socket is not a socket, and is not removed.
    case notASocket(path: String)
    /// The lock file next to the socket is a link, or not a file.
    case lockFileNotUsable(path: String, reason: String)
    case inheritedDescriptorNotUsable(reason: String)
    /// `$NOTIFY_SOCKET` is invalid.
    case notificationSocketNotUsable
    /// The file of the service manager's socket was removed or replaced. Only the manager can create it again.
    case fileLost(path: String)
    /// accept(2) has failed for too long.
    case acceptFails(reason: String)
    case systemCall(String, path: String, error: Int32)
}

extension SocketFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .pathTooLong(let path, let limit):
            "the socket path \(path) is longer than \(limit) bytes; choose a shorter one with --socket"
        case .folderNotUsable(let folder, let reason):
            "cannot use the directory \(folder) for the socket: \(reason); it must belong to you and have mode 0700"
        case .folderReplaceable(let folder, let reason):
            "cannot listen safely: the directory \(folder) \(reason); it must belong to you or root, and other users must not have write permission; change that, or choose another path with --socket"
        case .alreadyRunning(let path, let pid):
            "another broker\(pid.map { " (process \($0))" } ?? "") already listens at \(path); use it, or choose another path with --socket"
        case .notASocket(let path):
            "\(path) is not a socket; move it away, or choose another path with --socket"
        case .lockFileNotUsable(let path, let reason):
            "cannot lock the socket: \(path) \(reason)"
        case .inheritedDescriptorNotUsable(let reason):
            "cannot use the socket from the service manager: \(reason)"
        case .notificationSocketNotUsable:
            "invalid NOTIFY_SOCKET: expected an absolute path, or \"@\" and a name, of at most 107 bytes"
        case .fileLost(let path):
            "the socket \(path) was removed or replaced, and belongs to the service manager; run \"systemctl --user restart watchword.socket\""
        case .acceptFails(let reason):
            "cannot accept connections: \(reason.shortened); start the broker again"
        case .systemCall(let call, let path, let error):
            "\(call) failed for \(path): \(String(cString: strerror(error)))"
        }
    }
}

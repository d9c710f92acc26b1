/// The owner and mode of a directory, as reported by stat(2), to decide whether other users can replace files in it.
public struct DirectoryPermissions: Equatable, Sendable {
    /// The relation of the directory to the socket.
    public enum Role: Sendable {
        /// The directory holds the socket.
        case holdsSocket
        /// The directory is an ancestor of the socket's directory. If it is sticky (like `/tmp`), other users can add files
        /// but cannot replace existing ones.
        case ancestor
    }

    private static let writableByOthers: UInt32 = 0o022
    private static let sticky: UInt32 = 0o1000

    public let owner: UInt32
    public let mode: UInt32

    public init(owner: UInt32, mode: UInt32) {
        self.owner = owner
        self.mode = mode
    }

    /// Returns why the user `uid` cannot trust a socket in this directory; `nil` if only that user and root can replace it.
    public func problem(uid: UInt32, as role: Role = .holdsSocket) -> String? {
        if owner != uid && owner != 0 { return "belongs to user \(owner)" }
        if mode & Self.writableByOthers == 0 { return nil }
        if role == .ancestor && mode & Self.sticky != 0 { return nil }
        return "can be written by other users (mode 0\(String(mode & 0o7777, radix: 8)))"
    }
}

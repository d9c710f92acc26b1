/// The owner and the mode of a directory, as stat(2) reports them, and whether users besides its owner can replace what is in it.
public struct DirectoryPermissions: Equatable, Sendable {
    /// What the directory is to the socket.
    public enum Role: Sendable {
        /// It holds the socket.
        case holdsSocket
        /// It is an ancestor of the one that holds the socket. Where it is sticky, as `/tmp` is, others can add to it, and cannot
        /// replace what is there.
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

    /// The reason why the user `uid` cannot rely on a socket in it; `nil` where only that user and root can replace the socket.
    public func problem(uid: UInt32, as role: Role = .holdsSocket) -> String? {
        if owner != uid && owner != 0 { return "belongs to user \(owner)" }
        if mode & Self.writableByOthers == 0 { return nil }
        if role == .ancestor && mode & Self.sticky != 0 { return nil }
        return "can be written by other users (mode 0\(String(mode & 0o7777, radix: 8)))"
    }
}

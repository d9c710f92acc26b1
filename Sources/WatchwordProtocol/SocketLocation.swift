/// The path of the broker's socket, for the broker and its clients.
public struct SocketLocation: Sendable, Equatable {
    public let path: String

    /// The longest path that fits into a socket address, in bytes, without the final NUL (unix(7)).
    public static let longestPath = 107

    /// Uses `explicit`, else `$WATCHWORD_SOCKET`, else `watchword/broker.sock` below `$XDG_RUNTIME_DIR`, else below
    /// `/run/user/UID`.
    ///
    /// An empty variable, and an `$XDG_RUNTIME_DIR` that is not absolute, count as unset.
    public init(explicit: String?, environment: (String) -> String?, uid: UInt32) {
        func variable(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
        let runtime = variable("XDG_RUNTIME_DIR").flatMap { $0.hasPrefix("/") ? $0 : nil }
        path =
            explicit ?? variable("WATCHWORD_SOCKET") ?? "\(runtime ?? "/run/user/\(uid)")/watchword/broker.sock"
    }

    /// The directory of the socket.
    public var folder: String { Self.directory(of: path) }

    /// Returns the parent directory of `path`: everything before the last slash.
    public static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The restricted socket in the same directory, for clients without access to stored credentials.
    public var restricted: SocketLocation { SocketLocation(path: "\(folder)/restricted.sock") }

    public var isShortEnough: Bool { path.utf8.count <= Self.longestPath }

    private init(path: String) { self.path = path }
}

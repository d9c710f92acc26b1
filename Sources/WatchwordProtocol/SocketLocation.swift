/// Where the broker listens, and where its clients look for it.
public struct SocketLocation: Sendable, Equatable {
    public let path: String

    /// What fits into a socket address besides its final zero byte (unix(7)).
    public static let longestPath = 107

    /// `explicit`, else `$WATCHWORD_SOCKET`, else the folder `watchword` below `$XDG_RUNTIME_DIR`, else below `/run/user/UID`.
    ///
    /// Variables that are empty, and a run-time folder that is not absolute, count as absent.
    public init(explicit: String?, environment: (String) -> String?, uid: UInt32) {
        func variable(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
        let runtime = variable("XDG_RUNTIME_DIR").flatMap { $0.hasPrefix("/") ? $0 : nil }
        path =
            explicit ?? variable("WATCHWORD_SOCKET") ?? "\(runtime ?? "/run/user/\(uid)")/watchword/broker.sock"
    }

    /// The folder that holds the socket.
    public var folder: String { Self.directory(of: path) }

    /// The directory that holds what is at `path`: everything before its last slash.
    public static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Beside it: the socket for those who get nothing that is stored.
    public var restricted: SocketLocation { SocketLocation(path: "\(folder)/restricted.sock") }

    public var isShortEnough: Bool { path.utf8.count <= Self.longestPath }

    private init(path: String) { self.path = path }
}

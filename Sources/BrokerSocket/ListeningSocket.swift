internal import CPlatform
internal import Glibc
public import WatchwordProtocol

/// A listening Unix socket with its file and its lock.
///
/// This value owns the file and the lock. It does not close the descriptor.
public struct ListeningSocket: ~Copyable, Sendable {
    /// The number of connections that wait in the kernel to be accepted.
    private static let backlog: Int32 = 1024

    public let descriptor: Int32
    /// `nil` for a socket without a path.
    private let file: SocketFile?
    /// Whether the socket comes from the service manager. Then clients may have connected before this process started.
    let wasListening: Bool

    /// Creates a socket with mode 0600 in a private directory. Acquires the lock, and removes a stale socket file.
    public init(at location: SocketLocation) throws(SocketFailure) {
        guard location.isShortEnough else {
            throw .pathTooLong(path: location.path, limit: SocketLocation.longestPath)
        }
        try SocketFolder.prepare(location.folder)
        let lock = try SocketLock(forSocket: location.path)
        try Self.removeStaleFile(location.path)
        let descriptor = try Self.bind(location.path)
        self.descriptor = descriptor
        file = SocketFile(location.path, lock: lock)
        wasListening = false
    }

    /// Adopts a socket of the service manager (sd_listen_fds(3)). Its file is never removed.
    public init(inherited descriptor: Int32) throws(SocketFailure) {
        guard watchword_is_listening_unix_socket(descriptor) != 0 else {
            throw .inheritedDescriptorNotUsable(
                reason: "descriptor \(descriptor) is not a listening Unix stream socket")
        }
        guard watchword_set_close_on_exec(descriptor) == 0 else {
            throw .inheritedDescriptorNotUsable(reason: "close-on-exec cannot be set on it")
        }
        let path = Self.path(of: descriptor)
        if let path { try SocketFolder.check(inherited: SocketLocation.directory(of: path)) }
        self.descriptor = descriptor
        file = path.map { SocketFile(inherited: $0) }
        wasListening = true
    }

    /// Removes the file, so that no more clients connect. No effect if the file was replaced, or if this process did
    /// not create it.
    func removeFile() { file?.remove() }

    /// The path of the socket, and whether this process created it, if clients can no longer reach the socket at that
    /// path; otherwise `nil`.
    var lostPath: (path: String, isOwn: Bool)? {
        file.flatMap { $0.isInPlace ? nil : ($0.path, $0.isOwn) }
    }

    /// Removes the socket file of a broker that has ended. Called with the lock held.
    /// - Throws: if the file is not a socket, or if another process listens on it.
    private static func removeStaleFile(_ path: String) throws(SocketFailure) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return }
            throw .systemCall("lstat", path: path, error: errno)
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket(path: path) }
        guard !isAnswered(path) else { throw .alreadyRunning(path: path, pid: nil) }
        guard unlink(path) == 0 else { throw .systemCall("unlink", path: path, error: errno) }
    }

    /// Whether a process without the lock listens on this path.
    private static func isAnswered(_ path: String) -> Bool {
        guard let probe = try? newSocket(path) else { return false }
        defer { Glibc.close(probe) }
        return withAddress(of: path) { connect(probe, $0, $1) } == 0 || errno == EAGAIN
    }

    private static func bind(_ path: String) throws(SocketFailure) -> Int32 {
        let descriptor = try newSocket(path)
        // On Linux bind(2) gives the file the mode of the socket. The umask belongs to all threads.
        let isBound =
            fchmod(descriptor, 0o600) == 0  // guard: socket-mode
            && withAddress(of: path) { Glibc.bind(descriptor, $0, $1) } == 0
        guard isBound else {
            let error = errno
            Glibc.close(descriptor)
            throw .systemCall("bind", path: path, error: error)
        }
        guard listen(descriptor, backlog) == 0 else {
            let error = errno
            Glibc.close(descriptor)
            unlink(path)
            throw .systemCall("listen", path: path, error: error)
        }
        return descriptor
    }

    private static func newSocket(_ path: String) throws(SocketFailure) -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw .systemCall("socket", path: path, error: errno) }
        return descriptor
    }

    /// Returns the path that the socket is bound to; `nil` for a name in the abstract namespace (unix(7)).
    private static func path(of descriptor: Int32) -> String? {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        let start = MemoryLayout<sockaddr_un>.offset(of: \.sun_path)!
        guard status == 0, Int(length) > start else { return nil }
        let bytes = withUnsafeBytes(of: &address) { Array($0[start..<Int(length)].prefix { $0 != 0 }) }
        return bytes.first == UInt8(ascii: "/") ? String(decoding: bytes, as: UTF8.self) : nil
    }

    private static func withAddress(
        of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}

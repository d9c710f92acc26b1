internal import CPlatform
internal import Glibc
package import WatchwordProtocol

/// A Unix stream socket, connected to a process of the same user.
package struct UnixSocket: ~Copyable, Sendable {
    let descriptor: Int32

    /// The time limit for connect(2), which blocks only if the queue of a stopped broker is full.
    private static let connectSeconds = 10

    package init(connectingTo location: SocketLocation) throws(ClientFailure) {
        let path = location.path
        guard path.utf8.count <= SocketLocation.longestPath else {
            throw .cannotStart(
                reason: "the socket path \(path) is longer than \(SocketLocation.longestPath) bytes")
        }
        try SocketTrust.checkDirectory(of: location)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .cannotStart(reason: String(cString: strerror(errno))) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        setSendLimit(descriptor, seconds: Self.connectSeconds)
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else {
            let isFull = errno == EAGAIN
            close(descriptor)
            throw isFull ? .silent : .notRunning(path: path)
        }
        do throws(ClientFailure) {
            try SocketTrust.checkPeer(of: descriptor, at: location)
        } catch {
            close(descriptor)
            throw error
        }
        setSendLimit(descriptor, seconds: 0)
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Ends both directions: a `receive` of another thread fails.
    package func shutDown() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    func send(_ bytes: UnsafeRawBufferPointer) throws(ClientFailure) {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw .connectionLost }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    func send(_ bytes: [UInt8]) throws(ClientFailure) {
        let sent = bytes.withUnsafeBytes { bytes in Result { () throws(ClientFailure) in try send(bytes) } }
        try sent.get()
    }

    /// Waits for bytes and passes them to `body`.
    func receive(_ body: (UnsafeRawBufferPointer) throws(ClientFailure) -> Void) throws(ClientFailure) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 1)
        defer { buffer.deallocate() }
        var count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        while count < 0 && errno == EINTR { count = recv(descriptor, buffer.baseAddress, buffer.count, 0) }
        guard count > 0 else { throw .connectionLost }
        // A reply may contain a password.
        defer { watchword_wipe(buffer.baseAddress, count) }
        try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
}

/// Sets the time limit for sending, which applies to connect(2) as well (socket(7), SO_SNDTIMEO); 0 for no limit.
private func setSendLimit(_ descriptor: Int32, seconds: Int) {
    var limit = timeval(tv_sec: seconds, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
}

/// Checks that a socket belongs to this user's broker. A socket created by another user would receive passwords.
enum SocketTrust {
    /// Checks before connecting that no other user can replace files in the socket's directory. A missing directory is not an
    /// error here: connect(2) reports it.
    static func checkDirectory(of location: SocketLocation) throws(ClientFailure) {
        var status = stat()
        guard stat(location.folder, &status) == 0 else { return }
        let permissions = DirectoryPermissions(owner: status.st_uid, mode: status.st_mode)
        if let problem = permissions.problem(uid: geteuid()) {
            throw .socketNotTrusted(path: location.path, reason: "the directory \(location.folder) \(problem)")
        }
    }

    /// Checks after connecting, before anything is sent, that the listening process runs as this user (SO_PEERCRED, unix(7)).
    static func checkPeer(of descriptor: Int32, at location: SocketLocation) throws(ClientFailure) {
        var (pid, uid): (Int32, UInt32) = (0, .max)
        guard watchword_peer_credentials(descriptor, &pid, &uid) == 0, uid != .max else {
            throw .socketNotTrusted(path: location.path, reason: "the user who listens there is unknown")
        }
        guard uid == geteuid() else {  // guard: client-peer
            throw .socketNotTrusted(path: location.path, reason: "user \(uid) listens there")
        }
    }
}

internal import Glibc

/// The file of a listening socket, known by its device and inode, and, for one made here, the lock that makes it ours.
final class SocketFile: Sendable {
    let path: String
    /// Whether this process has made it, and may remove it.
    let isOwn: Bool
    private let identity: FileIdentity?
    /// Held for as long as this value lives.
    private let lock: SocketLock?

    init(_ path: String, lock: consuming SocketLock) {
        self.path = path
        self.lock = consume lock
        isOwn = true
        identity = FileIdentity(of: path)
    }

    /// That of a socket which the service manager has made.
    init(inherited path: String) {
        self.path = path
        lock = nil
        isOwn = false
        identity = FileIdentity(of: path)
    }

    /// Whether clients that connect to `path` still reach this socket: nobody has removed or replaced the file.
    var isInPlace: Bool { identity != nil && identity == FileIdentity(of: path) }

    /// Takes the file away, so that nobody connects any more; only if it is still the one that was made here.
    func remove() {
        if isOwn && isInPlace { unlink(path) }
    }
}

/// A bound socket holds its inode: no other file gets the number while the socket is open.
private struct FileIdentity: Equatable {
    let device: dev_t
    let inode: ino_t

    init?(of path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
        device = status.st_dev
        inode = status.st_ino
    }
}

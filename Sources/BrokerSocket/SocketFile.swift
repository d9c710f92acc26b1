internal import Glibc

/// The file of a listening socket, identified by device and inode, with its lock if this process created it.
final class SocketFile: Sendable {
    let path: String
    /// Whether this process created the file and may remove it.
    let isOwn: Bool
    private let identity: FileIdentity?
    /// The lock, held as long as this object exists.
    private let lock: SocketLock?

    init(_ path: String, lock: consuming SocketLock) {
        self.path = path
        self.lock = consume lock
        isOwn = true
        identity = FileIdentity(of: path)
    }

    /// The file of a socket that the service manager has created.
    init(inherited path: String) {
        self.path = path
        lock = nil
        isOwn = false
        identity = FileIdentity(of: path)
    }

    /// Whether clients that connect to `path` still reach this socket: the file was neither removed nor replaced.
    var isInPlace: Bool { identity != nil && identity == FileIdentity(of: path) }

    /// Removes the file, so that no more clients connect. No effect if the file was replaced, or if this process did
    /// not create it.
    func remove() {
        if isOwn && isInPlace { unlink(path) }
    }
}

/// The device and inode of a socket file. While the socket is open, its inode number is not reused.
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

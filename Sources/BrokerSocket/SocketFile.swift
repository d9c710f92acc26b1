internal import Glibc
internal import WatchwordProtocol

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

/// Checks the directory of the socket. A user who can write to this directory or to one above it can replace the
/// socket.
enum SocketFolder {
    /// Creates the directory, but not its parents, if it is missing. Checks the directory and all directories above it.
    static func prepare(_ folder: String) throws(SocketFailure) {
        try checkAncestors(of: folder)  // guard: socket-ancestors
        if mkdir(folder, 0o700) == 0 {
            // In case the umask has removed permissions of the user.
            chmod(folder, 0o700)
        } else if errno != EEXIST {
            throw .systemCall("mkdir", path: folder, error: errno)
        }
        var status = stat()
        guard lstat(folder, &status) == 0 else { throw .systemCall("lstat", path: folder, error: errno) }
        if let reason = problem(mode: status.st_mode, owner: status.st_uid, uid: geteuid()) {
            throw .folderNotUsable(folder: folder, reason: reason)
        }
    }

    /// Checks the directory of a socket that the service manager has created. The directory may belong to root and be
    /// readable by others. The directories above are not checked: they belong to root, which may be unmapped in the
    /// user namespace of the service.
    // guard: inherited-socket-folder
    static func check(inherited folder: String) throws(SocketFailure) { try check(folder, as: .holdsSocket) }

    /// Returns the reason why the directory cannot be used; `nil` if it can.
    static func problem(mode: mode_t, owner: uid_t, uid: uid_t) -> String? {  // guard: socket-folder
        if mode & S_IFMT == S_IFLNK { return "it is a symbolic link" }
        if mode & S_IFMT != S_IFDIR { return "it is not a directory" }
        if owner != uid { return "it belongs to user \(owner)" }
        if mode & 0o077 != 0 { return "others have access to it (mode 0\(String(mode & 0o7777, radix: 8)))" }
        return nil
    }

    /// Checks the directories above `folder`. A missing one is not an error here: mkdir(2) reports it.
    private static func checkAncestors(of folder: String) throws(SocketFailure) {
        guard let parent = realPath(SocketLocation.directory(of: folder)) else { return }
        var ancestor = parent
        try check(ancestor, as: .ancestor)
        while ancestor != "/" {
            ancestor = SocketLocation.directory(of: ancestor)
            try check(ancestor, as: .ancestor)
        }
    }

    private static func check(_ folder: String, as role: DirectoryPermissions.Role) throws(SocketFailure) {
        var status = stat()
        guard stat(folder, &status) == 0 else { throw .systemCall("stat", path: folder, error: errno) }
        let permissions = DirectoryPermissions(owner: status.st_uid, mode: status.st_mode)
        if let reason = permissions.problem(uid: geteuid(), as: role) {
            throw .folderReplaceable(folder: folder, reason: reason)
        }
    }

    private static func realPath(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }
}

/// A lock on a file next to the socket, so that two brokers never use the same path. Released explicitly, or by the
/// kernel when the process ends for any reason. The file remains.
struct SocketLock: ~Copyable {
    private let descriptor: Int32

    /// - Throws: `.alreadyRunning` if another process holds the lock.
    init(forSocket path: String) throws(SocketFailure) {
        let file = path + ".lock"
        let descriptor: Int32
        do throws(CarefulFile.Failure) {
            descriptor = try CarefulFile(file, O_RDWR | O_CREAT).release()
        } catch {
            throw .lockFileNotUsable(path: file, reason: error.text)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let error = errno
            let pid = Self.readPID(descriptor)
            Glibc.close(descriptor)
            if error == EWOULDBLOCK { throw .alreadyRunning(path: path, pid: pid) }
            throw .systemCall("flock", path: file, error: error)
        }
        self.descriptor = descriptor
        writePID()
    }

    /// Closing alone would not release the lock while a process that another thread is starting still has the
    /// descriptor, until it calls execve(2); this process could then not take the lock again (flock(2)).
    deinit {
        flock(descriptor, LOCK_UN)
        Glibc.close(descriptor)
    }

    /// Writes the PID to the file, for the error message of a second broker. Errors are ignored.
    private func writePID() {
        let text = "\(getpid())\n"
        guard ftruncate(descriptor, 0) == 0 else { return }
        _ = text.utf8CString.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, text.utf8.count, 0) }
    }

    private static func readPID(_ descriptor: Int32) -> Int? {
        var digits = [UInt8](repeating: 0, count: 16)
        let count = digits.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return nil }
        return Int(String(decoding: digits.prefix(count).prefix { (0x30...0x39).contains($0) }, as: UTF8.self))
    }
}

internal import Glibc
internal import WatchwordProtocol

/// The directory of the socket. Who can write into it, or into one above it, can put another socket in its place.
enum SocketFolder {
    /// Makes the directory if it is missing (not those above it), and checks it and all above it.
    static func prepare(_ folder: String) throws(SocketFailure) {
        try checkAncestors(of: folder)
        if mkdir(folder, 0o700) == 0 {
            // Another thread may just have a umask that takes more.
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

    /// Checks the directory of a socket that the service manager has made. It may be root's, and others may look into it. Those
    /// above it are the manager's choice: in a user namespace of the service's own their owner, root, is unknown.
    static func check(inherited folder: String) throws(SocketFailure) { try check(folder, as: .holdsSocket) }

    /// `nil` when everything is as it should be.
    static func problem(mode: mode_t, owner: uid_t, uid: uid_t) -> String? {
        if mode & S_IFMT == S_IFLNK { return "it is a symbolic link" }
        if mode & S_IFMT != S_IFDIR { return "it is not a folder" }
        if owner != uid { return "it belongs to user \(owner)" }
        if mode & 0o077 != 0 { return "others can get into it (mode 0\(String(mode & 0o7777, radix: 8)))" }
        return nil
    }

    /// One that does not exist is left to mkdir(2), which says so.
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

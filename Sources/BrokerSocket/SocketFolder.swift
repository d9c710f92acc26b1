internal import Glibc
internal import WatchwordProtocol

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

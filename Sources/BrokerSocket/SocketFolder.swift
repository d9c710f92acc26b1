internal import Glibc

/// The folder of the socket. Who can write into it can put another socket in its place, so it belongs to one user alone.
enum SocketFolder {
    /// Makes the folder if it is missing (not those above it), and checks it.
    static func prepare(_ folder: String) throws(SocketFailure) {
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

    /// `nil` when everything is as it should be.
    static func problem(mode: mode_t, owner: uid_t, uid: uid_t) -> String? {
        if mode & S_IFMT == S_IFLNK { return "it is a symbolic link" }
        if mode & S_IFMT != S_IFDIR { return "it is not a folder" }
        if owner != uid { return "it belongs to user \(owner)" }
        if mode & 0o077 != 0 { return "others can get into it (mode 0\(String(mode & 0o7777, radix: 8)))" }
        return nil
    }
}

internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

/// Whether a socket is that of this user's broker. A socket that another user has put there would receive passwords.
enum SocketTrust {
    /// Checked before connecting: nobody else can replace what is in the socket's directory. One that does not exist is left to
    /// connect(2), which says so.
    static func checkDirectory(of location: SocketLocation) throws(ClientFailure) {
        var status = stat()
        guard stat(location.folder, &status) == 0 else { return }
        let permissions = DirectoryPermissions(owner: status.st_uid, mode: status.st_mode)
        if let problem = permissions.problem(uid: geteuid()) {
            throw .socketNotTrusted(path: location.path, reason: "the directory \(location.folder) \(problem)")
        }
    }

    /// Checked after connecting and before anything is sent: the process that listens runs as this user (SO_PEERCRED, unix(7)).
    static func checkPeer(of descriptor: Int32, at location: SocketLocation) throws(ClientFailure) {
        var (pid, uid): (Int32, UInt32) = (0, .max)
        guard watchword_peer_credentials(descriptor, &pid, &uid) == 0, uid != .max else {
            throw .socketNotTrusted(path: location.path, reason: "the user who listens there is unknown")
        }
        guard uid == geteuid() else {
            throw .socketNotTrusted(path: location.path, reason: "user \(uid) listens there")
        }
    }
}

internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

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

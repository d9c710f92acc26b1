internal import Glibc
internal import WatchwordProtocol

/// The reason why a file is not private enough to hold a key: other users can read, replace or change it.
///
/// As in ssh, nobody else may have any access. One exception is libpq's: root may let a group read a file that belongs to root.
struct KeyFileExposure: Equatable {
    let text: String

    /// `nil` when only `user`, and root, can get at the key.
    /// - Parameters:
    ///   - mode: of the opened file, as its owner, so that nothing can be exchanged between check and use.
    ///   - path: only for the text.
    init?(mode: mode_t, owner: uid_t, user: uid_t, path: String) {
        let name = "'\(path.shortened(to: 1024))'"
        guard owner == user || owner == 0 else {
            text = "the private key file \(name) belongs to user \(owner), who can read it; use a copy of your own"
            return
        }
        let forbidden: mode_t = owner == user ? 0o077 : 0o037
        guard mode & forbidden != 0 else { return nil }
        let digits = String(mode & 0o7777, radix: 8)
        let access = mode & forbidden & 0o044 != 0 ? "read" : "change"
        text =
            "the private key file \(name) is not protected: other users can \(access) it (mode 0\(digits)); "
            + "run \"chmod 600 \(name)\""
    }
}

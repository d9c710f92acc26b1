internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

/// The bytes of a certificate or key, and whether their file is exposed to other users.
struct CertificateFile {
    let bytes: Secret
    private let exposure: KeyFileExposure?

    /// Reads a file, blocking the calling thread.
    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`.
    init(_ material: ClientCertificate.Material) throws(TransferFailure) {
        switch material {
        case .bytes(let bytes): (self.bytes, exposure) = (bytes, nil)
        case .file(let path): (bytes, exposure) = try Self.read(path)
        case .token: throw LoadedCertificate.failure("a token has no certificate file", .clientCertificateUnreadable)
        }
    }

    /// Checks the permissions of a file that contains a key.
    /// - Throws: `TransferFailure` with cause `clientKeyExposed` if other users can read or change the file.
    func requirePrivate() throws(TransferFailure) {
        if let exposure { throw LoadedCertificate.failure(exposure.text, .clientKeyExposed) }
    }

    /// Reads only regular files up to `EngineLimits.certificateFileBytes`: a pipe would block the thread.
    private static func read(_ path: String) throws(TransferFailure) -> (Secret, KeyFileExposure?) {
        let unreadable = LoadedCertificate.failure(
            "cannot read \(path.shortened): not a regular file, not readable, or larger than "
                + "\(EngineLimits.certificateFileBytes) bytes", .clientCertificateUnreadable)
        guard let file = try? CarefulFile(path, followsLinks: true) else { throw unreadable }
        let status = file.status
        guard status.st_size <= EngineLimits.certificateFileBytes else { throw unreadable }
        var error: Int32 = 0
        let bytes = Secret(reading: file.descriptor, capacity: Int(status.st_size), error: &error)
        guard error == 0 else { throw unreadable }
        let exposure = KeyFileExposure(mode: status.st_mode, owner: status.st_uid, user: geteuid(), path: path)
        return (bytes, exposure)
    }
}

/// The reason why a file is not private enough to hold a key: other users can read, replace or change it.
///
/// Other users must not have any access, as in ssh. The exception is that of libpq: a file that belongs to root may be
/// readable by its group.
struct KeyFileExposure: Equatable {
    let text: String

    /// Returns `nil` if the file is private enough.
    /// - Parameters:
    ///   - mode: the mode of the opened file; like `owner`, from fstat(2), so that the file cannot be replaced after the check.
    ///   - path: the path, for the message only.
    init?(mode: mode_t, owner: uid_t, user: uid_t, path: String) {
        let name = "'\(path.shortened(to: 1024))'"
        guard owner == user || owner == 0 else {  // guard: key-file-owner
            text = "the private key file \(name) belongs to user \(owner), who can read it; use a copy of your own"
            return
        }
        let forbidden: mode_t = owner == user ? 0o077 : 0o037
        guard mode & forbidden != 0 else { return nil }  // guard: key-file-mode
        let digits = String(mode & 0o7777, radix: 8)
        let access = mode & forbidden & 0o044 != 0 ? "read" : mode & forbidden & 0o022 != 0 ? "change" : "execute"
        // The user reads a file of root by its group, and could not read it with mode 600.
        let remedy = owner == user ? "run \"chmod 600 \(name)\"" : "as root, run \"chmod 640 \(name)\""
        text =
            "the private key file \(name) is not protected: other users can \(access) it (mode 0\(digits)); \(remedy)"
    }
}

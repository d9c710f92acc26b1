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

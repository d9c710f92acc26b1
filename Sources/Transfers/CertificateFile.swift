internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

/// The bytes of a certificate or key, and how far the file is exposed that they were read from.
struct CertificateFile {
    let bytes: Secret
    private let exposure: KeyFileExposure?

    /// Reads a file on the calling thread.
    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`.
    init(_ material: ClientCertificate.Material) throws(TransferFailure) {
        switch material {
        case .bytes(let bytes): (self.bytes, exposure) = (bytes, nil)
        case .file(let path): (bytes, exposure) = try Self.read(path)
        case .token: throw LoadedCertificate.failure("A token holds no file.", .clientCertificateUnreadable)
        }
    }

    /// To be called when a key was found in it.
    /// - Throws: `TransferFailure` with cause `clientKeyExposed` when others can get at the file.
    func requirePrivate() throws(TransferFailure) {
        if let exposure { throw LoadedCertificate.failure(exposure.text, .clientKeyExposed) }
    }

    /// Only regular files of a sensible size: a pipe would hold up the engine.
    private static func read(_ path: String) throws(TransferFailure) -> (Secret, KeyFileExposure?) {
        let unreadable = LoadedCertificate.failure(
            "The file \(path.shortened) cannot be read, or is too large.", .clientCertificateUnreadable)
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { throw unreadable }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size <= EngineLimits.certificateFileBytes
        else { throw unreadable }
        var isWhole = true
        let bytes = Secret(capacity: Int(status.st_size)) { buffer in
            var count = 0
            while count < buffer.count {
                let part = Glibc.read(file, buffer.baseAddress?.advanced(by: count), buffer.count - count)
                if part < 0 { isWhole = false }
                guard part > 0 else { break }
                count += part
            }
            return count
        }
        guard isWhole else { throw unreadable }
        let exposure = KeyFileExposure(mode: status.st_mode, owner: status.st_uid, user: geteuid(), path: path)
        return (bytes, exposure)
    }
}

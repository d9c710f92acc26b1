internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

extension ClientCertificate.Material {
    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`.
    func bytes() throws(TransferFailure) -> Secret {
        switch self {
        case .bytes(let bytes): return bytes
        case .file(let path): return try Self.read(path)
        case .token: throw LoadedCertificate.failure("A token holds no file.", .clientCertificateUnreadable)
        }
    }

    /// Only regular files of a sensible size: a pipe would hold up the engine.
    private static func read(_ path: String) throws(TransferFailure) -> Secret {
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
        return bytes
    }
}

import Glibc
import Logging
import WatchwordCore
import WatchwordProtocol

/// The certificates that are trusted for good, as lines of `https://host:port sha256-of-the-key`. Only the user can write to
/// it: whoever can change it decides whom the broker trusts.
struct TrustFile: TrustPort {
    let path: String
    let log: Logger

    /// `known-certificates` below $XDG_STATE_HOME or ~/.local/state; `nil` when neither is set.
    init?(environment: (String) -> String?, log: Logger) {
        guard let folder = StateLocation.folder(environment: environment) else { return nil }
        path = "\(folder)/known-certificates"
        self.log = log
    }

    func trustedKeys() -> [TrustedKey] {
        guard let text = readAll() else { return [] }
        return text.split(separator: "\n").compactMap { line in
            guard !line.hasPrefix("#") else { return nil }
            let key = TrustedKey(line: line)
            if key == nil {
                log.warning("a line of known-certificates is not understood", metadata: ["file": "\(path)"])
            }
            return key
        }
    }

    func keep(_ keys: [TrustedKey]) throws(TrustFailure) {
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        makeFolder(folder)
        let new = "\(path).new"
        let text =
            "# Certificates that you have accepted for good, by their keys. Take out a line to be asked again.\n"
            + keys.map { "\($0.line)\n" }.joined()
        let file = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw failure("cannot be written") }
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            bytes = bytes.dropFirst(count)
        }
        let isWhole = bytes.isEmpty && fsync(file) == 0
        guard close(file) == 0, isWhole, rename(new, path) == 0 else { throw failure("cannot be written") }
    }

    private func failure(_ what: String) -> TrustFailure {
        TrustFailure("\(path) \(what): \(String(cString: strerror(errno))). What was there is as it was.")
    }

    private func makeFolder(_ folder: String) {
        var made = ""
        for part in folder.split(separator: "/") {
            made += "/\(part)"
            _ = mkdir(made, 0o700)
        }
    }

    /// `nil` where there is no file of the user's own.
    private func readAll() -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == getuid(),
            status.st_mode & 0o022 == 0, status.st_size <= 1 << 20
        else {
            log.warning("known-certificates is not used: only you may write to it", metadata: ["file": "\(path)"])
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress, $0.count) }
        return String(validating: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}

import Logging
import WatchwordCore

/// The certificates that are trusted for good, as lines of `https://host:port sha256-of-the-key`.
struct TrustFile: TrustPort {
    let file: StateFile
    private let log: Logger

    /// `known-certificates`; `nil` where there is no place for it.
    init?(environment: (String) -> String?, log: Logger) {
        guard let file = StateFile(named: "known-certificates", environment: environment, log: log) else { return nil }
        self.file = file
        self.log = log
    }

    func trustedKeys() -> [TrustedKey] {
        do throws(StateFile.Failure) {
            return try file.lines().compactMap { line in
                let key = TrustedKey(line: line)
                if key == nil { log.warning("a line is not understood", metadata: ["file": "\(file.path)"]) }
                return key
            }
        } catch {
            log.warning("\(error.text)")
            return []
        }
    }

    func whenKept(_ completion: @escaping @Sendable () -> Void) { file.whenWritten(completion) }

    func keep(_ keys: [TrustedKey]) {
        file.replace(
            heading:
                "Certificates that you have accepted for good, by their keys. Take out a line to be asked again.",
            keys.map(\.line))
    }
}

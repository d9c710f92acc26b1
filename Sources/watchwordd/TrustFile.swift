import Logging
import WatchwordCore

/// The file of permanently trusted certificates, as lines of `https://host:port sha256-of-the-key`.
struct TrustFile: TrustPort {
    let file: StateFile
    private let log: Logger

    /// Uses the file `known-certificates`. Returns `nil` without a state directory.
    init?(environment: (String) -> String?, log: Logger) {
        guard let file = StateFile(named: "known-certificates", environment: environment, log: log) else { return nil }
        self.file = file
        self.log = log
    }

    func trustedKeys() -> [TrustedKey] {
        do throws(StateFile.Failure) {
            return try file.lines().compactMap { line in
                let key = TrustedKey(line: line)
                if key == nil { log.warning("ignoring a malformed line", metadata: ["file": "\(file.path)"]) }
                return key
            }
        } catch {
            log.warning("\(error.text)")
            return []
        }
    }

    func whenStored(_ completion: @escaping @Sendable (String?) -> Void) { file.whenWritten(completion) }

    func store(_ keys: [TrustedKey]) {
        file.replace(
            heading:
                "Certificates that you have accepted permanently, by their keys. Remove a line to be asked again.",
            keys.map(\.line))
    }
}

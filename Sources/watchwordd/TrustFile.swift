import Logging
import WatchwordCore

/// The file of permanently trusted certificates, as lines of `https://host:port sha256-of-the-key`.
struct TrustFile: TrustPort {
    let file: StateFile

    /// Uses the file `known-certificates`. Returns `nil` without a state directory.
    init?(environment: (String) -> String?, log: Logger) {
        guard let file = StateFile(named: "known-certificates", environment: environment, log: log) else { return nil }
        self.file = file
    }

    func trustedKeys() -> [TrustedKey] { file.entries(TrustedKey.init(line:)) }

    func whenStored(_ completion: @escaping @Sendable (String?) -> Void) { file.whenWritten(completion) }

    func store(_ keys: [TrustedKey]) {
        file.replace(
            heading:
                "Certificates that you have accepted permanently, by their keys. Remove a line to be asked again.",
            keys.map(\.line))
    }
}

/// The file of permanently trusted certificate keys. It contains no secrets: servers send these keys to every client.
public protocol TrustPort: DurableStore {
    /// Returns the stored keys; empty if there are none or if they cannot be read.
    func trustedKeys() -> [TrustedKey]

    /// Replaces the stored keys atomically. Does not wait for the disk; the adapter logs a failure.
    func store(_ keys: [TrustedKey])
}

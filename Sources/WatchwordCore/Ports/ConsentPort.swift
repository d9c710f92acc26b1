/// The file of permanent grants. It contains no secrets.
public protocol ConsentPort: DurableStore {
    /// Returns the stored grants; empty if there are none or if they cannot be read.
    func permanentConsents() -> [PermanentConsent]

    /// Replaces the stored grants atomically. Does not wait for the disk; the adapter logs a failure.
    func store(_ grants: [PermanentConsent])
}

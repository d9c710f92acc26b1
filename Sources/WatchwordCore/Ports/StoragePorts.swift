public import WatchwordProtocol

/// Storage for data that outlives the broker, on a disk that may be slow.
public protocol DurableStore: Sendable {
    /// Calls `completion`, on any thread, after everything passed so far was written or has failed to be written: with
    /// `nil`, or with the reason of the last failure.
    func whenStored(_ completion: @escaping @Sendable (_ failure: String?) -> Void)
}

/// The file of permanent grants. It contains no secrets.
public protocol ConsentPort: DurableStore {
    /// Returns the stored grants; empty if there are none or if they cannot be read.
    func permanentConsents() -> [PermanentConsent]

    /// Replaces the stored grants atomically. Does not wait for the disk; the adapter logs a failure.
    func store(_ grants: [PermanentConsent])
}

/// The file of permanently trusted certificate keys. It contains no secrets: servers send these keys to every client.
public protocol TrustPort: DurableStore {
    /// Returns the stored keys; empty if there are none or if they cannot be read.
    func trustedKeys() -> [TrustedKey]

    /// Replaces the stored keys atomically. Does not wait for the disk; the adapter logs a failure.
    func store(_ keys: [TrustedKey])
}

/// The audit log, which has a record of each use of a credential.
public protocol AuditPort: Sendable {
    /// Records an event. Returns at once and never fails; events that are lost are counted, and the log reports their
    /// number.
    func record(_ event: AuditEvent)
}

public import WatchwordProtocol

/// Where the account is kept of who used what for where.
public protocol AuditPort: Sendable {
    /// Returns at once, and never fails: what cannot be kept is counted, and the account says so.
    func record(_ event: AuditEvent)
}

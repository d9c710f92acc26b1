public import WatchwordProtocol

/// The audit log, which has a record of each use of a credential.
public protocol AuditPort: Sendable {
    /// Records an event. Returns at once and never fails; events that are lost are counted, and the log reports their
    /// number.
    func record(_ event: AuditEvent)
}

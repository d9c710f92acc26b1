internal import WatchwordCore

/// Everything outside that the broker uses.
struct BrokerPorts: Sendable {
    let loop: any BrokerLoop
    let transfers: any TransferPort
    /// `nil` where there is none: the session cache is all there is then.
    let keyring: (any KeyringPort)?
    let netrc: (any NetrcPort)?
    let trust: (any TrustPort)?
    let grants: (any GrantPort)?
    /// `nil` where no audit log is kept.
    let audit: (any AuditPort)?
    let clock: any BrokerClock
}

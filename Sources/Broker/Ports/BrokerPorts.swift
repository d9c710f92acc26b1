internal import WatchwordCore

/// The interfaces through which the broker uses its adapters.
struct BrokerPorts: Sendable {
    let loop: any BrokerLoop
    let transfers: any TransferPort
    /// `nil` without a keyring. Then credentials are stored only in the session cache.
    let keyring: (any KeyringPort)?
    let netrc: (any NetrcPort)?
    let commands: (any CommandPort)?
    let trust: (any TrustPort)?
    let consents: (any ConsentPort)?
    /// `nil` without an audit log.
    let audit: (any AuditPort)?
    /// `nil` without fronts.
    let fronts: (any FrontPort)?
    /// `nil` without PAC files and settings of the desktop.
    let upstreams: (any UpstreamPort)?
    let clock: any BrokerClock
}

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

/// The broker's clock: the system clock in the daemon, a simulated clock in tests. Used on the broker's executor only.
public protocol BrokerClock: Sendable {
    /// The time since an arbitrary start. Monotonic; includes the time during which the machine was suspended.
    var now: Duration { get }

    /// The total time during which the machine was suspended since that start.
    var suspended: Duration { get }

    /// The wall-clock time since 1970, which may jump. Used only where an absolute time is needed, for example in audit
    /// records and for expiry.
    var sinceEpoch: Duration { get }

    /// Runs `action` once on the broker's executor after `duration`, and never before this method returns.
    func schedule(after duration: Duration, _ action: @escaping @Sendable () -> Void) -> any ScheduledAction
}

/// An action that a clock runs later.
public protocol ScheduledAction: AnyObject, Sendable {
    /// Cancels the action. No effect once it has run.
    func cancel()
}

/// The event loop on whose thread the broker and the sockets of its clients run. Its creator must retain it as long as
/// the broker is in use.
public protocol BrokerLoop: SerialExecutor {
    /// Runs `call` on the loop's thread, after all calls posted before. May be called on any thread.
    /// - Returns: `false` if the loop has ended; then `call` is never run.
    @discardableResult
    func post(_ call: @escaping @Sendable () -> Void) -> Bool

    /// A histogram of the durations of the loop's turns, of which a long one delays every client: the upper bounds of the buckets
    /// in milliseconds, and the number of turns in each bucket and above the last bound.
    var turnTimes: (bounds: [Int], counts: [Int], longest: Duration) { get }
}

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

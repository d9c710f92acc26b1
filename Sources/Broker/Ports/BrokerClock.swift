/// Time, as the broker sees it: real in the daemon, false in tests. Used on the broker's executor only.
public protocol BrokerClock: Sendable {
    /// Since any one start. Never goes back, and goes on while the machine sleeps.
    var now: Duration { get }

    /// How long the machine has slept since that start.
    var suspended: Duration { get }

    /// Of the clock on the wall, since 1970. It may jump: for telling people when something was, and for nothing else.
    var sinceEpoch: Duration { get }

    /// Runs `action` once on the broker's executor when `duration` has passed, never before this returns.
    func schedule(after duration: Duration, _ action: @escaping @Sendable () -> Void) -> any ScheduledAction
}

/// Something that a clock will do.
public protocol ScheduledAction: AnyObject, Sendable {
    /// It is not done any more. Not needed where it was done.
    func cancel()
}

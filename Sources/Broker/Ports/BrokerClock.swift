/// Time, as the broker sees it: real in the daemon, false in tests.
public protocol BrokerClock: Sendable {
    /// Since any one start. Never goes back, and goes on while the machine sleeps.
    var now: Duration { get }

    /// How long the machine has slept since that start.
    var suspended: Duration { get }

    /// Returns when `duration` has passed, or throws at once when the task is cancelled.
    func sleep(for duration: Duration) async throws
}

/// The clock of the system.
public struct SystemClock: BrokerClock {
    private let start = ContinuousClock.now
    private let startAwake = SuspendingClock.now

    public init() {}

    public var now: Duration { ContinuousClock.now - start }

    public var suspended: Duration { now - (SuspendingClock.now - startAwake) }

    public func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration, clock: .continuous) }
}

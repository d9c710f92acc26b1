internal import Glibc

/// Time, as the broker sees it: real in the daemon, false in tests.
public protocol BrokerClock: Sendable {
    /// Since any one start. Never goes back, and goes on while the machine sleeps.
    var now: Duration { get }

    /// How long the machine has slept since that start.
    var suspended: Duration { get }

    /// Of the clock on the wall, since 1970. It may jump: for telling people when something was, and for nothing else.
    var sinceEpoch: Duration { get }

    /// Returns when `duration` has passed, or throws at once when the task is cancelled.
    func sleep(for duration: Duration) async throws
}

/// The clock of the system.
public struct SystemClock: BrokerClock {
    /// A sleep that is cancelled leaves something of itself in Swift's runtime until its time is over. Deadlines are long, and most
    /// are cancelled soon.
    private static let longestSleep = Duration.seconds(5)

    private let start = ContinuousClock.now
    private let startAwake = SuspendingClock.now

    public init() {}

    public var now: Duration { ContinuousClock.now - start }

    public var suspended: Duration { now - (SuspendingClock.now - startAwake) }

    public var sinceEpoch: Duration {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    public func sleep(for duration: Duration) async throws {
        let end = ContinuousClock.now + duration
        var rest = duration
        repeat {
            try await Task.sleep(for: min(rest, Self.longestSleep), clock: .continuous)
            rest = end - ContinuousClock.now
        } while rest > .zero
    }
}

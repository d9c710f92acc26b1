/// Decides when accept(2) is retried after a failure other than a shortage of resources (such as EPERM from a security
/// module, EPROTO or ENETDOWN), and when retrying ends.
struct AcceptRetry {
    /// The reaction to a failure.
    enum Decision: Equatable {
        case again(after: Duration)
        /// All attempts within `Limits.limit` have failed. A new process may succeed.
        case stop
    }

    /// Pauses double from `firstPause` to `longestPause`. Retrying ends after a series of failures that lasts `limit`.
    struct Limits: Sendable {
        var firstPause = Duration.milliseconds(100)
        var longestPause = Duration.seconds(1)
        var limit = Duration.seconds(60)
        /// A failure begins a new series if the pause after the previous failure ended this long ago.
        var quiet = Duration.seconds(10)
    }

    private struct Streak {
        let since: ContinuousClock.Instant
        var last: ContinuousClock.Instant
        var pause: Duration
    }

    private let limits: Limits
    private var streak: Streak?

    init(_ limits: Limits = Limits()) { self.limits = limits }

    mutating func failed(at now: ContinuousClock.Instant) -> Decision {
        guard var current = streak, now - current.last < current.pause + limits.quiet else {
            streak = Streak(since: now, last: now, pause: limits.firstPause)
            return .again(after: limits.firstPause)
        }
        if now - current.since >= limits.limit { return .stop }
        current.last = now
        current.pause = min(current.pause * 2, limits.longestPause)
        streak = current
        return .again(after: current.pause)
    }

    /// Ends the series of failures, because a connection was accepted.
    mutating func succeeded() { streak = nil }
}

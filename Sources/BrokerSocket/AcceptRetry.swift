/// Decides when accept(2) is tried again after it has failed for a reason other than a shortage (EPERM of a security module,
/// EPROTO, ENETDOWN), and when that has lasted too long.
struct AcceptRetry {
    /// What follows a failure.
    enum Decision: Equatable {
        case again(after: Duration)
        /// It has failed for the whole of `limit`: a new process may do better.
        case giveUp
    }

    /// Pauses double from the first to the longest; failures that go on for `limit` are given up.
    struct Limits: Sendable {
        var firstPause = Duration.milliseconds(100)
        var longestPause = Duration.seconds(1)
        var limit = Duration.seconds(60)
        /// A failure so long after the last try belongs to another connection: nothing failed in between.
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
        if now - current.since >= limits.limit { return .giveUp }
        current.last = now
        current.pause = min(current.pause * 2, limits.longestPause)
        streak = current
        return .again(after: current.pause)
    }

    /// A connection was accepted.
    mutating func succeeded() { streak = nil }
}

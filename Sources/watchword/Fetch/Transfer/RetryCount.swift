import Glibc
import WatchwordProtocol

/// Counts the retries of one transfer for its retry policy.
struct RetryCount {
    private let policy: RetryPolicy
    private let isRepeatable: Bool
    private let start = ContinuousClock.now
    private var hasStarted = false
    private(set) var count = 0

    init(_ item: FetchItem) { (policy, isRepeatable) = (item.retry, item.content?.isRepeatable ?? true) }

    /// Records an attempt. Returns whether there was an earlier one.
    mutating func recordAttempt() -> Bool {
        defer { hasStarted = true }
        return hasStarted
    }

    mutating func recordRetry() { count += 1 }

    /// Returns the pause before a retry; `nil` if the attempt is not repeated.
    func pause(after outcome: RetryPolicy.Outcome) -> Duration? {
        policy.pause(after: outcome, retries: count, elapsed: .now - start, isRepeatable: isRepeatable)
    }

    func pause(after head: ReportedHead?) -> Duration? {
        let wish = HTTPDate.retryAfter(head?.headers.firstValue(of: "Retry-After"), now: time(nil))
        return pause(after: .response(status: head?.status ?? 0, retryAfter: wish))
    }
}

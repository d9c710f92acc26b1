internal import WatchwordProtocol

/// The time that a fetch has used on the network and for waiting: for other fetches, for their questions, and for the
/// keyring. The time that a respondent takes to answer a question of the fetch itself does not count, because each
/// question has a deadline of its own.
struct TimeBudget: Sendable {
    let timeout: Duration
    /// Whether `timeout` includes waiting. It does if the client has set it.
    let boundsWaiting: Bool
    private var network = Duration.zero
    private var waited = Duration.zero
    private var waitedSinceRequest = Duration.zero
    /// When the fetch's own question was queued behind other questions; `nil` while it is not queued.
    private(set) var queuedSince: Duration?

    init(_ request: borrowing FetchRequest) {
        (timeout, boundsWaiting) = (request.timeout, request.timeoutBoundsWaiting)
    }

    mutating func recordRequest() { waitedSinceRequest = .zero }

    mutating func recordNetwork(_ duration: Duration) { network += duration }

    mutating func recordWait(_ duration: Duration) {
        waited += duration
        waitedSinceRequest += duration
    }

    /// Records that the fetch's own question is queued behind others. If it moves to another queue, the same wait
    /// continues.
    mutating func recordQueued(_ now: Duration) { queuedSince = queuedSince ?? now }

    /// Ends the wait in a queue: the question was delivered or withdrawn.
    mutating func endQueue(_ now: Duration) {
        guard let since = queuedSince else { return }
        queuedSince = nil
        recordWait(now - since)
    }

    /// The time left for the network.
    var left: Duration { timeout - network - (boundsWaiting ? waited : .zero) }

    /// Returns when a wait that began at `since` reaches its limit.
    func end(ofWaitSince since: Duration) -> Duration {
        let end = since + Limits.leaseWait - waitedSinceRequest
        return boundsWaiting ? min(end, since + left) : end
    }

    /// Whether no time is left at `now`, in a wait that began at `since`.
    func isUsedUp(at now: Duration, inWaitSince since: Duration) -> Bool { boundsWaiting && now - since >= left }
}

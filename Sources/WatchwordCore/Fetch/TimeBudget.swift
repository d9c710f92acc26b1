internal import WatchwordProtocol

/// How much of its time a fetch has used: on the network, and waiting for other fetches and the keyring. What it waits for its
/// own questions does not count: they have deadlines of their own.
struct TimeBudget: Sendable {
    let timeout: Duration
    /// The client has named `timeout`: then it bounds the waiting as well.
    let boundsWaiting: Bool
    private var network = Duration.zero
    private var waited = Duration.zero
    private var waitedSinceRequest = Duration.zero

    init(_ plan: FetchPlan) { (timeout, boundsWaiting) = (plan.timeout, plan.timeoutBoundsWaiting) }

    mutating func noteRequest() { waitedSinceRequest = .zero }

    mutating func noteNetwork(_ duration: Duration) { network += duration }

    mutating func noteWait(_ duration: Duration) {
        waited += duration
        waitedSinceRequest += duration
    }

    /// For the network.
    var left: Duration { timeout - network - (boundsWaiting ? waited : .zero) }

    /// When a wait that began at `since` has to end.
    func end(ofWaitSince since: Duration) -> Duration {
        let end = since + Limits.turnWait - waitedSinceRequest
        return boundsWaiting ? min(end, since + left) : end
    }

    /// Whether nothing is left at `now`, in a wait that began at `since`.
    func isUsedUp(at now: Duration, inWaitSince since: Duration) -> Bool { boundsWaiting && now - since >= left }
}

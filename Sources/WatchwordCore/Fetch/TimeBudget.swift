internal import WatchwordProtocol

/// How much of its time a fetch has used: on the network, and waiting for other fetches, for their questions, and for the
/// keyring. The time in which a person has its own question does not count: that has a deadline of its own.
struct TimeBudget: Sendable {
    let timeout: Duration
    /// The client has named `timeout`: then it bounds the waiting as well.
    let boundsWaiting: Bool
    private var network = Duration.zero
    private var waited = Duration.zero
    private var waitedSinceRequest = Duration.zero
    /// Since when the fetch's own question has waited behind those of others; `nil` while it does not.
    private(set) var queuedSince: Duration?

    init(_ plan: FetchPlan) { (timeout, boundsWaiting) = (plan.timeout, plan.timeoutBoundsWaiting) }

    mutating func noteRequest() { waitedSinceRequest = .zero }

    mutating func noteNetwork(_ duration: Duration) { network += duration }

    mutating func noteWait(_ duration: Duration) {
        waited += duration
        waitedSinceRequest += duration
    }

    /// The fetch's own question waits behind those of others. A queue that it leaves for another one is the same wait.
    mutating func noteQueued(_ now: Duration) { queuedSince = queuedSince ?? now }

    /// Its question has been delivered, or need not be any longer.
    mutating func endQueue(_ now: Duration) {
        guard let since = queuedSince else { return }
        queuedSince = nil
        noteWait(now - since)
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

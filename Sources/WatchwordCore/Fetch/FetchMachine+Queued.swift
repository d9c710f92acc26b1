internal import WatchwordProtocol

/// A question that is queued behind those of other fetches, at an agent that takes only so many at once (`maxPending`): until
/// it is delivered, the fetch waits for other fetches, and its time counts.
extension FetchMachine {
    /// When the last `ask` or `confirm` was queued; `nil` when it was not, or has been delivered.
    var queuedSince: Duration? {
        switch state {
        case .asking, .confirming: time.queuedSince
        default: nil
        }
    }

    mutating func queued(now: Duration) { time.noteQueued(now) }

    mutating func delivered(now: Duration) { time.endQueue(now) }

    /// What the fetch waits for while its question is queued. Of the question before it nothing is said: it may be another
    /// program's.
    func queueWait(_ context: FetchContext) -> FetchWait? {
        guard let since = queuedSince else { return nil }
        switch state {
        case .asking(let question, _):
            return space(of: question).map { FetchWait(reason: .question, space: $0, since: since) }
        case .confirming(_, let use, _): return FetchWait(reason: .question, space: use.space, since: since)
        default: return nil
        }
    }

    /// Why the fetch ends in its queue; `nil` where its time is not used up.
    func queueTimeout(now: Duration) -> FetchFailure? {
        guard let since = queuedSince, time.isUsedUp(at: now, inWaitSince: since) else { return nil }
        return timeoutFailure
    }
}

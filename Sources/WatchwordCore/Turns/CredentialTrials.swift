internal import WatchwordProtocol

/// Credentials that are on their way to a server without its verdict, and the fetches that wait for that verdict (semantics
/// rule 22): whatever is wrong with a credential, the account counts one failed login and not one for each fetch.
///
/// Without I/O: each call returns the fetches that are to go on.
struct CredentialTrials: Sendable {
    /// What has come of a credential that was sent.
    enum Verdict: Sendable, Equatable {
        case accepted, refused
        /// It was sent unasked, and the server may not have looked at it: good enough for whoever sends it unasked as well.
        case taken
        /// The server has not looked at it, or nothing came back.
        case none
    }

    private struct Trial: Sendable {
        let space: ProtectionSpace
        let credential: LoginCredential
        /// How long the next fetch waits before it sends the credential as well.
        let patience: Duration
        let since: Duration
        var lastSent: Duration
        /// More than one where a verdict took longer than `patience`.
        var senders: [FetchID]
        var waiters: [FetchID] = []
    }

    private var trials: [Trial] = []

    var waitingCount: Int { trials.reduce(0) { $0 + $1.waiters.count } }

    /// Enters a credential that is about to be sent. Returns `false`, and enters the fetch as one that waits, where another
    /// fetch has sent the same one and its verdict is not overdue.
    /// - Parameter patience: see `Limits.verdictWait` and `Limits.knownVerdictWait`.
    mutating func begin(
        _ credential: LoginCredential, in space: ProtectionSpace, by fetch: FetchID, patience: Duration, now: Duration
    ) -> Bool {
        let known = trials.firstIndex { $0.space.mayBe(space) && $0.credential.isSame(as: credential) }
        guard let known else {
            trials.append(
                Trial(
                    space: space, credential: credential, patience: patience, since: now, lastSent: now,
                    senders: [fetch]))
            return true
        }
        if trials[known].senders.contains(fetch) { return true }
        guard now - trials[known].lastSent >= trials[known].patience else {
            trials[known].waiters.append(fetch)
            return false
        }
        trials[known].lastSent = now
        trials[known].senders.append(fetch)
        return true
    }

    /// Ends what `fetch` has sent for `space`, or for any where that is `nil`. Returns the fetches that waited for the verdict;
    /// none while another fetch may still bring one.
    mutating func end(by fetch: FetchID, in space: ProtectionSpace?, _ verdict: Verdict) -> [FetchID] {
        var woken: [FetchID] = []
        for index in trials.indices.reversed() where trials[index].senders.contains(fetch) {
            guard space.map({ $0.mayBe(trials[index].space) }) ?? true else { continue }
            trials[index].senders.removeAll { $0 == fetch }
            guard trials[index].senders.isEmpty || verdict != .none else { continue }
            woken += trials.remove(at: index).waiters
        }
        return woken
    }

    /// A waiting fetch waits no longer.
    mutating func leave(_ fetch: FetchID) {
        for index in trials.indices { trials[index].waiters.removeAll { $0 == fetch } }
    }

    /// What the fetch waits for, and since when that is on its way.
    func wait(of fetch: FetchID) -> FetchWait? {
        trials.first { $0.waiters.contains(fetch) }.map {
            FetchWait(reason: .trial, space: $0.space, since: $0.since)
        }
    }

    /// When the fetch, which waits, may send the credential as well.
    func patienceEnd(of fetch: FetchID) -> Duration? {
        trials.first { $0.waiters.contains(fetch) }.map { $0.lastSent + $0.patience }
    }
}

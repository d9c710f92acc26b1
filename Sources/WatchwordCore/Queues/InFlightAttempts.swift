internal import WatchwordProtocol

/// The credentials that were sent and have no verdict yet, and the fetches that wait for the verdict (SEMANTICS rule
/// 22). A wrong credential thus causes one failed login, not one for each fetch.
///
/// Performs no I/O: `end` returns the fetches to resume.
struct InFlightAttempts: Sendable {
    /// The result of sending a credential.
    enum Verdict: Sendable, Equatable {
        case accepted, refused
        /// The request succeeded with a preemptive credential, which the server may not have checked. Only fetches that
        /// also send the credential preemptively may rely on this verdict.
        case taken
        /// The server did not check the credential, or did not respond.
        case none
    }

    private struct InFlightAttempt: Sendable {
        let space: ProtectionSpace
        let credential: LoginCredential
        /// How long the next fetch waits before it sends the credential as well.
        let patience: Duration
        let since: Duration
        var lastSent: Duration
        /// The fetches that sent the credential; more than one if the verdict took longer than `patience`.
        var senders: [FetchID]
        var waiters: [FetchID] = []
    }

    private var inFlightAttempts: [InFlightAttempt] = []

    var waitingCount: Int { inFlightAttempts.reduce(0) { $0 + $1.waiters.count } }

    /// Records a credential that is about to be sent. Returns `false`, and enqueues the fetch, if another fetch has
    /// sent the same credential and the verdict is not overdue.
    /// - Parameter patience: see `Limits.verdictWait` and `Limits.knownVerdictWait`.
    mutating func begin(
        _ credential: LoginCredential, in space: ProtectionSpace, by fetch: FetchID, patience: Duration, now: Duration
    ) -> Bool {
        let known = inFlightAttempts.firstIndex { $0.space.mayBe(space) && $0.credential.isSame(as: credential) }
        guard let known else {
            inFlightAttempts.append(
                InFlightAttempt(
                    space: space, credential: credential, patience: patience, since: now, lastSent: now,
                    senders: [fetch]))
            return true
        }
        if inFlightAttempts[known].senders.contains(fetch) { return true }
        guard now - inFlightAttempts[known].lastSent >= inFlightAttempts[known].patience else {
            inFlightAttempts[known].waiters.append(fetch)
            return false
        }
        inFlightAttempts[known].lastSent = now  // guard: attempt-one-after-the-other
        inFlightAttempts[known].senders.append(fetch)
        return true
    }

    /// Ends the in-flight attempts of `fetch` in `space`, or in every space if `space` is `nil`. Returns the fetches
    /// that waited for the verdict. If `verdict` is `none` and another fetch has sent the credential as well, they
    /// continue to wait.
    mutating func end(by fetch: FetchID, in space: ProtectionSpace?, _ verdict: Verdict) -> [FetchID] {
        var woken: [FetchID] = []
        for index in inFlightAttempts.indices.reversed() where inFlightAttempts[index].senders.contains(fetch) {
            guard space.map({ $0.mayBe(inFlightAttempts[index].space) }) ?? true else { continue }
            inFlightAttempts[index].senders.removeAll { $0 == fetch }
            guard inFlightAttempts[index].senders.isEmpty || verdict != .none else { continue }
            woken += inFlightAttempts.remove(at: index).waiters
        }
        return woken
    }

    /// Removes a fetch that no longer waits.
    mutating func leave(_ fetch: FetchID) {
        for index in inFlightAttempts.indices { inFlightAttempts[index].waiters.removeAll { $0 == fetch } }
    }

    /// Returns the attempt that the fetch waits for and when it began; `nil` if it does not wait.
    func wait(of fetch: FetchID) -> FetchWait? {
        inFlightAttempts.first { $0.waiters.contains(fetch) }.map {
            FetchWait(reason: .trial, space: $0.space, since: $0.since)
        }
    }

    /// Returns when a waiting fetch may send the credential as well; `nil` if it does not wait.
    func patienceEnd(of fetch: FetchID) -> Duration? {
        inFlightAttempts.first { $0.waiters.contains(fetch) }.map { $0.lastSent + $0.patience }
    }
}

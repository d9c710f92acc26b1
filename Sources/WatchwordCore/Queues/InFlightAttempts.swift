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

    /// A fetch that was waiting for a verdict.
    struct Woken: Sendable, Equatable {
        let fetch: FetchID
        /// Whether the verdict is that of the server which this fetch reaches.
        let isOfItsServer: Bool
    }

    /// A fetch that has sent the credential or waits to send it, and what steers it.
    private struct Sender: Sendable, Equatable {
        let fetch: FetchID
        let steering: AuthenticationQueues.Steering?
    }

    private struct InFlightAttempt: Sendable {
        let space: ProtectionSpace
        let credential: LoginCredential
        /// How long the next fetch waits before it sends the credential as well.
        let patience: Duration
        let since: Duration
        var lastSent: Duration
        /// The fetches that sent the credential; more than one if the verdict took longer than `patience`.
        var senders: [Sender]
        var waiters: [Sender] = []
    }

    private var attempts = ChallengerTable<InFlightAttempt>()
    /// The challengers to which each fetch has sent credentials. Some of these attempts may have ended.
    private var sites: [FetchID: Set<Challenger>] = [:]
    /// The challenger whose verdict each fetch waits for.
    private var waits: [FetchID: Challenger] = [:]

    var waitingCount: Int { waits.count }

    /// Records a credential that is about to be sent. Returns `false`, and enqueues the fetch, if another fetch has
    /// sent the same credential and the verdict is not overdue.
    /// - Parameter patience: see `Limits.verdictWait` and `Limits.knownVerdictWait`.
    mutating func begin(
        _ credential: LoginCredential, in space: ProtectionSpace, by fetch: FetchID,
        _ steering: AuthenticationQueues.Steering? = nil, patience: Duration, now: Duration
    ) -> Bool {
        let challenger = Challenger(space)
        let sender = Sender(fetch: fetch, steering: steering)
        let known = attempts[challenger].firstIndex { $0.space.mayBe(space) && $0.credential.isSame(as: credential) }
        guard let known else {
            let attempt = InFlightAttempt(
                space: space, credential: credential, patience: patience, since: now, lastSent: now, senders: [sender])
            attempts.append(attempt, at: challenger)
            sites[fetch, default: []].insert(challenger)
            return true
        }
        var attempt: InFlightAttempt {
            get { attempts[challenger][known] }
            set { attempts[challenger][known] = newValue }
        }
        if attempt.senders.contains(where: { $0.fetch == fetch }) { return true }
        guard now - attempt.lastSent >= attempt.patience else {
            attempt.waiters.append(sender)
            waits[fetch] = challenger
            return false
        }
        attempt.lastSent = now  // guard: attempt-one-after-the-other
        attempt.senders.append(sender)
        sites[fetch, default: []].insert(challenger)
        return true
    }

    /// Ends the in-flight attempts of `fetch` in `space`, or in every space if `space` is `nil`. Returns the fetches
    /// that waited for the verdict. If `verdict` is `none` and another fetch has sent the credential as well, they
    /// continue to wait.
    mutating func end(by fetch: FetchID, in space: ProtectionSpace?, _ verdict: Verdict) -> [Woken] {
        let challengers = space.map { [Challenger($0)] } ?? sites.removeValue(forKey: fetch) ?? []
        var woken: [Woken] = []
        for challenger in challengers {
            for (index, attempt) in attempts[challenger].enumerated().reversed() {
                guard let sender = attempt.senders.first(where: { $0.fetch == fetch }),
                    space?.mayBe(attempt.space) ?? true
                else { continue }
                attempts[challenger][index].senders.removeAll { $0.fetch == fetch }
                guard attempt.senders == [sender] || verdict != .none else { continue }
                woken += attempts[challenger].remove(at: index).waiters.map {
                    // guard: verdict-of-the-same-server
                    Woken(fetch: $0.fetch, isOfItsServer: $0.steering == sender.steering)
                }
            }
        }
        for waiter in woken { waits[waiter.fetch] = nil }
        return woken
    }

    /// Removes a fetch that no longer waits.
    mutating func leave(_ fetch: FetchID) {
        guard let challenger = waits.removeValue(forKey: fetch) else { return }
        for index in attempts[challenger].indices {
            attempts[challenger][index].waiters.removeAll { $0.fetch == fetch }
        }
    }

    /// Returns the attempt that the fetch waits for and when it began; `nil` if it does not wait.
    func wait(of fetch: FetchID) -> FetchWait? {
        awaited(by: fetch).map { FetchWait(reason: .trial, space: $0.space, since: $0.since) }
    }

    /// Returns when a waiting fetch may send the credential as well; `nil` if it does not wait.
    func patienceEnd(of fetch: FetchID) -> Duration? { awaited(by: fetch).map { $0.lastSent + $0.patience } }

    private func awaited(by fetch: FetchID) -> InFlightAttempt? {
        waits[fetch].flatMap { attempts[$0].first { $0.waiters.contains { $0.fetch == fetch } } }
    }
}

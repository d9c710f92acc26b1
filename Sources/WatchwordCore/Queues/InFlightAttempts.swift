internal import WatchwordProtocol

/// The credentials that were sent and have no verdict yet, and the fetches that wait to send them (SEMANTICS rule 22).
/// A wrong credential thus causes few failed logins, not one for each fetch.
///
/// Performs no I/O: `end` returns the fetches to resume.
struct InFlightAttempts: Sendable {
    /// A login that is about to be sent.
    struct Login: Sendable {
        let credential: LoginCredential
        let space: ProtectionSpace
        let steering: AuthenticationQueues.Steering?
        /// When a request was sent that the server has accepted with this login; `nil` if the session has seen none.
        var provenAt: Duration?

        /// Whether a verdict on one may be a verdict on the other.
        fileprivate func concerns(_ other: Login) -> Bool {
            space.mayBe(other.space) && credential.isSame(as: other.credential)
        }
    }

    /// The result of sending a credential.
    enum Verdict: Sendable, Equatable {
        /// The server, with connections for at most so many requests, has accepted the credential. For a preemptive
        /// credential of an unknown realm, it may not have checked it; only fetches that send it in the same way rely on
        /// that.
        case accepted(most: Int)
        case refused
        /// Only the nonce of an earlier fetch may have been refused.
        case unclear
        /// The request ended before its response.
        case lost
        /// The server did not check the credential, because it was not sent, or the connection had logged in before.
        case none
    }

    /// A fetch that was waiting for a verdict.
    struct Woken: Sendable, Equatable {
        let fetch: FetchID
        let news: News
    }

    enum News: Sendable, Equatable {
        /// The fetch may send the credential, and counts as having sent it.
        case admitted(provenAt: Duration?)
        case refused
    }

    private struct InFlightAttempt: Sendable {
        let login: Login
        let since: Duration
        var window = AttemptWindow()
        var waiters: [FetchID] = []
        /// Since when there have always been some that wait.
        var waitingSince = Duration.zero
    }

    private var attempts = ChallengerTable<InFlightAttempt>()
    /// The challengers to which each fetch has sent credentials. Some of these attempts may have ended.
    private var sites: [FetchID: Set<Challenger>] = [:]
    /// The challenger whose verdict each fetch waits for.
    private var waits: [FetchID: Challenger] = [:]

    var waitingCount: Int { waits.count }
    var isEmpty: Bool { attempts.isEmpty }

    // MARK: Sending

    /// Records a credential that is about to be sent. Returns `false`, and enqueues the fetch, if it has to wait.
    mutating func begin(_ login: Login, by fetch: FetchID, now: Duration) -> Bool {
        let challenger = Challenger(login.space)
        let index = place(of: login, at: challenger, now)
        if attempts[challenger][index].window.hasSent(fetch) { return true }
        attempts[challenger][index].window.expire(now: now)
        attempts[challenger][index].window.note(provenAt: login.provenAt)
        let others = others(beside: index, at: challenger)
        guard attempts[challenger][index].window.permits(fetch, others: others, now: now) else {
            if attempts[challenger][index].waiters.isEmpty { attempts[challenger][index].waitingSince = now }
            attempts[challenger][index].waiters.append(fetch)
            waits[fetch] = challenger
            return false
        }
        send(fetch, index, challenger, now)
        return true
    }

    /// Ends the attempts of `fetch` at this challenger, except with `login`: it has chosen another one. Returns the
    /// fetches to resume.
    mutating func end(by fetch: FetchID, at challenger: Challenger, except login: Login?, now: Duration) -> [Woken] {
        guard sites[fetch]?.contains(challenger) == true else { return [] }
        let index = attempts[challenger].firstIndex {
            $0.window.hasSent(fetch) && !(login.map($0.login.isSame) ?? false)
        }
        return index.map { end(fetch, at: $0, challenger, .none, now) } ?? []
    }

    /// Returns when a fetch may send the login although others have no verdict yet; `nil` if there is no such time.
    func nextTry(of login: Login) -> Duration? {
        let challenger = Challenger(login.space)
        return attempts[challenger].firstIndex { $0.login.isSame(as: login) }.flatMap { nextTry($0, challenger) }
    }

    private func nextTry(_ index: Int, _ challenger: Challenger) -> Duration? {
        attempts[challenger][index].window.nextTry(others: others(beside: index, at: challenger))
    }

    private mutating func send(_ fetch: FetchID, _ index: Int, _ challenger: Challenger, _ now: Duration) {
        attempts[challenger][index].window.send(fetch, now: now)
        sites[fetch, default: []].insert(challenger)
    }

    private mutating func place(of login: Login, at challenger: Challenger, _ now: Duration) -> Int {
        if let known = attempts[challenger].firstIndex(where: { $0.login.isSame(as: login) }) { return known }
        attempts.append(InFlightAttempt(login: login, since: now), at: challenger)
        return attempts[challenger].endIndex - 1
    }

    /// The requests with the same credential over an exception, through a proxy that a fetch names, or for an unknown
    /// realm.
    private func others(beside index: Int, at challenger: Challenger) -> AttemptWindow.Others {
        var others = AttemptWindow.Others.none
        let all = attempts[challenger]
        for other in all.indices where other != index && all[other].login.concerns(all[index].login) {
            others.atRisk += all[other].window.atRisk
            others.lastSentAt = max(others.lastSentAt, all[other].window.lastSentAt)
        }
        return others
    }

    // MARK: Verdicts

    /// Ends the in-flight attempts of `fetch` in `space`, or in every space if `space` is `nil`. Returns the fetches to
    /// resume.
    mutating func end(by fetch: FetchID, in space: ProtectionSpace?, _ verdict: Verdict, now: Duration) -> [Woken] {
        guard let known = sites[fetch] else { return [] }
        let challengers = space.map { [Challenger($0)] } ?? known
        var woken: [Woken] = []
        for challenger in challengers {
            let index = attempts[challenger].firstIndex { attempt in
                attempt.window.hasSent(fetch) && space?.mayBe(attempt.login.space) ?? true
            }
            if let index { woken += end(fetch, at: index, challenger, verdict, now) }
            let isOver = !attempts[challenger].contains { $0.window.hasSent(fetch) }
            if isOver { sites[fetch]?.remove(challenger) }
        }
        if sites[fetch]?.isEmpty == true { sites[fetch] = nil }
        return woken
    }

    private mutating func end(
        _ fetch: FetchID, at index: Int, _ challenger: Challenger, _ verdict: Verdict, _ now: Duration
    ) -> [Woken] {
        let login = attempts[challenger][index].login
        switch verdict {
        case .refused: return refuse(login, challenger)
        case .accepted(let most):
            let (waiting, since) = (attempts[challenger][index].waiters.count, attempts[challenger][index].waitingSince)
            attempts[challenger][index].window.accept(fetch, waiting: waiting, since: since, most: most, now: now)
        case .unclear:
            // The fetch itself has the new nonce, and begins again.
            attempts[challenger][index].window.doubt(fetch, now: now)
            return []
        case .lost: attempts[challenger][index].window.lose(fetch, now: now)
        case .none: attempts[challenger][index].window.end(fetch)
        }
        return admit(beside: login, at: challenger, now)
    }

    /// Forgets the refused login. All that wait for a verdict on it choose again.
    private mutating func refuse(_ login: Login, _ challenger: Challenger) -> [Woken] {
        var woken: [Woken] = []
        for index in attempts[challenger].indices.reversed() where attempts[challenger][index].login.concerns(login) {
            woken += attempts[challenger][index].waiters.map { Woken(fetch: $0, news: .refused) }
            attempts[challenger][index].waiters = []
            // guard: verdict-of-the-same-server
            if attempts[challenger][index].login.steering == login.steering {
                attempts[challenger].remove(at: index)
            }
        }
        for waiter in woken { waits[waiter.fetch] = nil }
        return woken
    }

    /// Lets those that wait send the login, as far as the windows permit it now.
    private mutating func admit(beside login: Login, at challenger: Challenger, _ now: Duration) -> [Woken] {
        var woken: [Woken] = []
        for index in attempts[challenger].indices.reversed() where attempts[challenger][index].login.concerns(login) {
            let provenAt = attempts[challenger][index].window.provenAt
            while let next = attempts[challenger][index].waiters.first {
                let others = others(beside: index, at: challenger)
                let window = attempts[challenger][index].window
                guard window.permits(next, others: others, now: now) else { break }
                attempts[challenger][index].waiters.removeFirst()
                waits[next] = nil
                send(next, index, challenger, now)
                woken.append(Woken(fetch: next, news: .admitted(provenAt: provenAt)))
            }
            dropIfIdle(index, challenger)
        }
        return woken
    }

    private mutating func dropIfIdle(_ index: Int, _ challenger: Challenger) {
        let attempt = attempts[challenger][index]
        let isOverdue = attempts.count > Limits.idleAttemptWindows && !attempt.window.hasOpen
        if attempt.waiters.isEmpty, attempt.window.isIdle || isOverdue { attempts[challenger].remove(at: index) }
    }

    /// Forgets requests that ended long ago.
    mutating func expire(now: Duration) {
        attempts.changeAll { $0.window.expire(now: now) }
        attempts.removeAll { $0.waiters.isEmpty && $0.window.isIdle }
    }

    /// Forgets all credentials that no running fetch has sent or waits for.
    mutating func forgetEnded() { attempts.removeAll { $0.waiters.isEmpty && !$0.window.hasOpen } }

    // MARK: Waiting

    /// Removes a fetch that no longer waits.
    mutating func leave(_ fetch: FetchID) {
        guard let challenger = waits.removeValue(forKey: fetch) else { return }
        for index in attempts[challenger].indices.reversed() {
            attempts[challenger][index].waiters.removeAll { $0 == fetch }
            dropIfIdle(index, challenger)
        }
    }

    /// Returns the attempt that the fetch waits for and when it began; `nil` if it does not wait.
    func wait(of fetch: FetchID) -> FetchWait? {
        awaited(by: fetch).map { challenger, index in
            let attempt = attempts[challenger][index]
            return FetchWait(reason: .trial, space: attempt.login.space, since: attempt.since)
        }
    }

    /// Returns when a waiting fetch may send the credential without a verdict; `nil` if it does not wait, or if there is
    /// no such time.
    func nextTry(of fetch: FetchID) -> Duration? {
        awaited(by: fetch).flatMap { challenger, index in nextTry(index, challenger) }
    }

    private func awaited(by fetch: FetchID) -> (Challenger, Int)? {
        waits[fetch].flatMap { challenger in
            attempts[challenger].firstIndex { $0.waiters.contains(fetch) }.map { (challenger, $0) }
        }
    }
}

extension InFlightAttempts.Login {
    /// Whether both share one window.
    fileprivate func isSame(as other: InFlightAttempts.Login) -> Bool {
        // guard: unasked-proves-nothing
        space == other.space && steering == other.steering && credential.isSame(as: other.credential)
    }
}

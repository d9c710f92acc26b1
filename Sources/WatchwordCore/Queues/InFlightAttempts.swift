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

    fileprivate struct InFlightAttempt: Sendable {
        let login: Login
        let since: Duration
        var window = AttemptWindow()
        var waiters: [FetchID] = []
        /// Since when there have always been some that wait.
        var waitingSince = Duration.zero

        /// Whether nothing is lost if it is forgotten.
        var isIdle: Bool { waiters.isEmpty && window.isIdle }
    }

    private var attempts = ChallengerTable<[InFlightAttempt]>()
    /// The challengers to which each fetch has sent credentials. Some of these attempts may have ended.
    private var sites: [FetchID: [Challenger]] = [:]
    /// The challenger whose verdict each fetch waits for.
    private var waits: [FetchID: Challenger] = [:]

    var waitingCount: Int { waits.count }
    var isEmpty: Bool { attempts.isEmpty }

    // MARK: Sending

    /// Records a credential that is about to be sent. Returns `false`, and enqueues the fetch, if it has to wait.
    mutating func begin(_ login: Login, by fetch: FetchID, now: Duration) -> Bool {
        let challenger = Challenger(login.space)
        let isSent = attempts.change(at: challenger) { $0.begin(login, by: fetch, now: now) }
        if isSent { record(fetch, at: challenger) } else { waits[fetch] = challenger }
        return isSent
    }

    /// Ends the attempts of `fetch` at this challenger, except with `login`: it has chosen another one. Returns the
    /// fetches to resume.
    mutating func end(by fetch: FetchID, at challenger: Challenger, except login: Login?, now: Duration) -> [Woken] {
        guard sites[fetch]?.contains(challenger) == true else { return [] }
        return end(by: fetch, at: challenger, .none, now) { !(login.map($0.isSame) ?? false) }
    }

    /// Returns when a fetch may send the login although others have no verdict yet; `nil` if there is no such time.
    func nextTry(of login: Login) -> Duration? {
        let attempts = attempts[Challenger(login.space)]
        return attempts.firstIndex { $0.login.isSame(as: login) }.flatMap(attempts.nextTry)
    }

    private mutating func record(_ fetch: FetchID, at challenger: Challenger) {
        guard let place = sites.index(forKey: fetch) else {
            sites[fetch] = [challenger]
            return
        }
        if !sites.values[place].contains(challenger) { sites.values[place].append(challenger) }
    }

    // MARK: Verdicts

    /// Ends the in-flight attempts of `fetch` in `space`, or in every space if `space` is `nil`. Returns the fetches to
    /// resume.
    mutating func end(by fetch: FetchID, in space: ProtectionSpace?, _ verdict: Verdict, now: Duration) -> [Woken] {
        guard let known = sites[fetch] else { return [] }
        guard let space else {
            return known.flatMap { challenger in end(by: fetch, at: challenger, verdict, now) { _ in true } }
        }
        let challenger = Challenger(space)
        guard known.contains(challenger) else { return [] }
        return end(by: fetch, at: challenger, verdict, now) { space.mayBe($0.space) }
    }

    private mutating func end(
        by fetch: FetchID, at challenger: Challenger, _ verdict: Verdict, _ now: Duration,
        where matches: (Login) -> Bool
    ) -> [Woken] {
        let isFull = attempts.count > Limits.idleAttemptWindows
        let (woken, isOver) = attempts.change(at: challenger) { attempts -> ([Woken], Bool) in
            let meant = attempts.firstIndex { $0.window.hasSent(fetch) && matches($0.login) }
            let woken = meant.map { attempts.end(fetch, at: $0, verdict, isFull: isFull, now) } ?? []
            return (woken, !attempts.contains { $0.window.hasSent(fetch) })
        }
        if isOver, let place = sites.index(forKey: fetch) {
            if sites.values[place].count == 1 {
                sites.remove(at: place)
            } else {
                sites.values[place].removeAll { $0 == challenger }
            }
        }
        for waiter in woken {
            waits[waiter.fetch] = nil
            if waiter.news != .refused { record(waiter.fetch, at: challenger) }
        }
        return woken
    }

    /// Forgets requests that ended long ago.
    mutating func expire(now: Duration) {
        attempts.changeAll { $0.window.expire(now: now) }
        attempts.removeAll { $0.isIdle }
    }

    /// Forgets all credentials that no running fetch has sent or waits for.
    mutating func forgetEnded() { attempts.removeAll { $0.waiters.isEmpty && !$0.window.hasOpen } }

    // MARK: Waiting

    /// Removes a fetch that no longer waits.
    mutating func leave(_ fetch: FetchID) {
        guard let challenger = waits.removeValue(forKey: fetch) else { return }
        attempts.change(at: challenger) { attempts in
            for index in attempts.indices { attempts[index].waiters.removeAll { $0 == fetch } }
            attempts.removeAll { $0.isIdle }
        }
    }

    /// Returns the attempt that the fetch waits for and when it began; `nil` if it does not wait.
    func wait(of fetch: FetchID) -> FetchWait? {
        awaited(by: fetch).map { attempts, index in
            FetchWait(reason: .trial, space: attempts[index].login.space, since: attempts[index].since)
        }
    }

    /// Returns when a waiting fetch may send the credential without a verdict; `nil` if it does not wait, or if there is
    /// no such time.
    func nextTry(of fetch: FetchID) -> Duration? {
        awaited(by: fetch).flatMap { attempts, index in attempts.nextTry(at: index) }
    }

    private func awaited(by fetch: FetchID) -> ([InFlightAttempt], Int)? {
        waits[fetch].flatMap { challenger in
            let attempts = attempts[challenger]
            return attempts.firstIndex { $0.waiters.contains(fetch) }.map { (attempts, $0) }
        }
    }
}

/// The attempts at one server or proxy.
extension [InFlightAttempts.InFlightAttempt] {
    fileprivate mutating func begin(_ login: InFlightAttempts.Login, by fetch: FetchID, now: Duration) -> Bool {
        let index = place(of: login, now)
        if self[index].window.hasSent(fetch) { return true }
        self[index].window.expire(now: now)
        self[index].window.note(provenAt: login.provenAt)
        guard self[index].window.permits(fetch, others: others(beside: index), now: now) else {
            if self[index].waiters.isEmpty { self[index].waitingSince = now }
            self[index].waiters.append(fetch)
            return false
        }
        self[index].window.send(fetch, now: now)
        return true
    }

    private mutating func place(of login: InFlightAttempts.Login, _ now: Duration) -> Int {
        if let known = firstIndex(where: { $0.login.isSame(as: login) }) { return known }
        append(InFlightAttempts.InFlightAttempt(login: login, since: now))
        return endIndex - 1
    }

    /// The requests with the same credential over an exception, through a proxy that a fetch names, or for an unknown
    /// realm.
    private func others(beside index: Int) -> AttemptWindow.Others {
        var others = AttemptWindow.Others.none
        for other in indices where other != index && self[other].login.concerns(self[index].login) {
            others.atRisk += self[other].window.atRisk
            others.lastSentAt = Swift.max(others.lastSentAt, self[other].window.lastSentAt)
        }
        return others
    }

    fileprivate func nextTry(at index: Int) -> Duration? { self[index].window.nextTry(others: others(beside: index)) }

    /// - Parameter isFull: whether windows are forgotten that only remember ended requests.
    fileprivate mutating func end(
        _ fetch: FetchID, at index: Int, _ verdict: InFlightAttempts.Verdict, isFull: Bool, _ now: Duration
    ) -> [InFlightAttempts.Woken] {
        switch verdict {
        case .refused: return refuse(self[index].login)
        case .accepted(let most):
            let (waiting, since) = (self[index].waiters.count, self[index].waitingSince)
            self[index].window.accept(fetch, waiting: waiting, since: since, most: most, now: now)
        case .unclear:
            // The fetch itself has the new nonce, and begins again.
            self[index].window.doubt(fetch, now: now)
            return []
        case .lost: self[index].window.lose(fetch, now: now)
        case .none: self[index].window.end(fetch)
        }
        let woken = contains { !$0.waiters.isEmpty } ? admit(beside: self[index].login, now) : []
        removeAll { $0.isIdle || isFull && $0.waiters.isEmpty && !$0.window.hasOpen }
        return woken
    }

    /// Forgets the refused login. All that wait for a verdict on it choose again.
    private mutating func refuse(_ login: InFlightAttempts.Login) -> [InFlightAttempts.Woken] {
        var woken: [InFlightAttempts.Woken] = []
        for index in indices.reversed() where self[index].login.concerns(login) {
            woken += self[index].waiters.map { InFlightAttempts.Woken(fetch: $0, news: .refused) }
            self[index].waiters = []
            // guard: verdict-of-the-same-server
            if self[index].login.steering == login.steering { remove(at: index) }
        }
        return woken
    }

    /// Lets those that wait send the login, as far as the windows permit it now.
    private mutating func admit(beside login: InFlightAttempts.Login, _ now: Duration) -> [InFlightAttempts.Woken] {
        var woken: [InFlightAttempts.Woken] = []
        for index in indices.reversed() where !self[index].waiters.isEmpty && self[index].login.concerns(login) {
            let provenAt = self[index].window.provenAt
            while let next = self[index].waiters.first,
                self[index].window.permits(next, others: others(beside: index), now: now)
            {
                self[index].waiters.removeFirst()
                self[index].window.send(next, now: now)
                woken.append(InFlightAttempts.Woken(fetch: next, news: .admitted(provenAt: provenAt)))
            }
        }
        return woken
    }
}

extension InFlightAttempts.Login {
    /// Whether both share one window.
    fileprivate func isSame(as other: InFlightAttempts.Login) -> Bool {  // guard: unasked-proves-nothing
        space == other.space && steering == other.steering && credential.isSame(as: other.credential)
    }
}

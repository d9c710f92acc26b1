import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Credentials whose verdict is open: SEMANTICS rule 22.
@Suite struct InFlightAttemptTests {
    private static let space = ProtectionSpace(
        scheme: "http", host: "h", port: 80, realm: "r", authenticationMethod: .httpBasic)

    private func loginAttempt(
        _ password: String = "pw", realm: ExactText? = "r", _ steering: AuthenticationQueues.Steering? = nil,
        provenAt: Duration? = nil
    ) -> InFlightAttempts.Login {
        var space = Self.space
        space.realm = realm
        return InFlightAttempts.Login(
            credential: login("bob", password), space: space, steering: steering, provenAt: provenAt)
    }

    private func begin(
        _ attempts: inout InFlightAttempts, _ fetch: Int, _ password: String = "pw", at now: Duration = .zero
    ) -> Bool {
        attempts.begin(loginAttempt(password), by: FetchID(number: fetch), now: now)
    }

    private func end(
        _ attempts: inout InFlightAttempts, _ fetch: Int, _ verdict: InFlightAttempts.Verdict, at now: Duration = .zero
    ) -> [Int] {
        attempts.end(by: FetchID(number: fetch), in: Self.space, verdict, now: now).map(\.fetch.number)
    }

    @Test func oneSendsAndTheOthersWait() {
        var attempts = InFlightAttempts()
        #expect(begin(&attempts, 1))
        #expect(!begin(&attempts, 2))
        #expect(begin(&attempts, 3, "another"))
        #expect(begin(&attempts, 1), "a fetch does not wait for its own attempt")
        #expect(attempts.waitingCount == 1)
        #expect(end(&attempts, 3, .accepted(most: 64)) == [])
        #expect(end(&attempts, 1, .refused) == [2])
        #expect(attempts.waitingCount == 0)
        #expect(attempts.isEmpty)
    }

    @Test("Rule 22: while verdicts are missing, one more fetch tries in each period, and never more than three")
    func whileVerdictsAreMissingAtMostThreeTry() {
        var attempts = InFlightAttempts()
        for fetch in 1...5 { #expect(begin(&attempts, fetch) == (fetch == 1)) }
        for (number, fetch) in [2, 3].enumerated() {
            let due = Limits.verdictWait * (number + 1)
            #expect(attempts.nextTry(of: FetchID(number: fetch)) == due)
            attempts.leave(FetchID(number: fetch))
            #expect(!begin(&attempts, fetch, at: due - .milliseconds(1)))
            attempts.leave(FetchID(number: fetch))
            #expect(begin(&attempts, fetch, at: due))
        }
        #expect(attempts.nextTry(of: FetchID(number: 4)) == nil)
        attempts.leave(FetchID(number: 4))
        #expect(!begin(&attempts, 4, at: .seconds(3600)))
        // The verdict on any of them serves the others.
        #expect(end(&attempts, 3, .accepted(most: 64), at: .seconds(3600)) == [5, 4])
    }

    @Test("Rule 22: a request that ended before its response counts for ten more seconds")
    func aRequestThatEndedBeforeItsResponseCountsForAWhile() {
        var attempts = InFlightAttempts()
        var now = Duration.zero
        for fetch in 1...3 {
            #expect(begin(&attempts, fetch, at: now))
            #expect(end(&attempts, fetch, .lost, at: now) == [])
            now += Limits.verdictWait
        }
        #expect(!begin(&attempts, 4, at: now - .milliseconds(1)), "three may have failed")
        #expect(attempts.nextTry(of: FetchID(number: 4)) == Limits.verdictWait + Limits.lostVerdictMemory)
        attempts.leave(FetchID(number: 4))
        #expect(begin(&attempts, 4, at: Limits.verdictWait * 3))
        attempts.forgetEnded()
        #expect(!attempts.isEmpty)
        #expect(end(&attempts, 4, .none, at: now) == [])
        attempts.forgetEnded()
        #expect(attempts.isEmpty, "no password remains")
    }

    @Test("Rule 22: a request with a known login that ended before its response counts for two more seconds")
    func aRequestWithAKnownLoginThatEndedBeforeItsResponseCountsForTwoSeconds() {
        var attempts = InFlightAttempts()
        let login = loginAttempt(provenAt: .zero)
        for fetch in 1...3 {
            let isSent = attempts.begin(login, by: FetchID(number: fetch), now: .seconds(1))
            #expect(isSent && end(&attempts, fetch, .lost, at: .seconds(1)) == [])
        }
        let due = .seconds(1) + Limits.knownVerdictWait
        for (now, isSent) in [(due - .milliseconds(1), false), (due, true)] {
            #expect(attempts.begin(login, by: FetchID(number: 4), now: now) == isSent)
            if !isSent { #expect(attempts.nextTry(of: FetchID(number: 4)) == due) }
            attempts.leave(FetchID(number: 4))
        }
    }

    @Test("Rule 22: a fetch that sends its request again does not wait for its own lost one; others do")
    func aFetchDoesNotWaitForItsOwnLostRequest() {
        var attempts = InFlightAttempts()
        #expect(begin(&attempts, 1))
        #expect(end(&attempts, 1, .lost) == [])
        #expect(!begin(&attempts, 2))
        #expect(begin(&attempts, 1))
    }

    @Test("Rule 24: the verdict of a server that one fetch chose is not that of the server another one reaches")
    func aVerdictCountsForFetchesThatReachTheSameServer() {
        var attempts = InFlightAttempts()
        let steering = AuthenticationQueues.Steering(proxy: nil, exceptionalKey: [1])
        for (number, own) in [(1, steering), (2, nil), (3, steering), (4, nil)] {
            let isFirst = attempts.begin(loginAttempt("pw", own), by: FetchID(number: number), now: .zero)
            #expect(isFirst == (number == 1), "one attempt at a time, wherever it goes")
        }
        // The acceptance proves nothing elsewhere, where one takes its place.
        #expect(
            attempts.end(by: FetchID(number: 1), in: nil, .accepted(most: 64), now: .zero) == [
                .init(fetch: FetchID(number: 2), news: .admitted(provenAt: nil)),
                .init(fetch: FetchID(number: 3), news: .admitted(provenAt: .zero)),
            ])
        #expect(
            attempts.end(by: FetchID(number: 3), in: nil, .refused, now: .zero) == [
                .init(fetch: FetchID(number: 4), news: .refused)
            ])
        #expect(!attempts.isEmpty, "the second has no verdict yet")
    }

    @Test func attemptsInDifferentSpacesAreIndependent() {
        var attempts = InFlightAttempts()
        #expect(begin(&attempts, 1))
        let isAlone = attempts.begin(loginAttempt(realm: "R"), by: FetchID(number: 2), now: .zero)
        #expect(isAlone)
        let unasked = attempts.begin(loginAttempt(realm: nil), by: FetchID(number: 3), now: .zero)
        #expect(!unasked, "an unknown realm may be each of them")
    }

    @Test("Rule 22: a fetch that chooses another login leaves its place to those that wait")
    func aFetchThatChoosesAnotherLoginLeavesItsPlace() {
        var attempts = InFlightAttempts()
        #expect(begin(&attempts, 1))
        #expect(!begin(&attempts, 2))
        let woken = attempts.end(
            by: FetchID(number: 1), at: Challenger(Self.space), except: loginAttempt("other"), now: .zero)
        #expect(woken == [.init(fetch: FetchID(number: 2), news: .admitted(provenAt: nil))])
    }
}

/// A credential of the session that the server has not accepted within the last two seconds.
@Suite struct AgedCredentialTests {
    /// Returns a run with a login that has not been used since then.
    private func session(_ scheme: String = "Basic realm=\"r\"", age: Duration = Limits.acceptanceAge) throws
        -> TableRun
    {
        var run = TableRun()
        run.schemes.ntlmHosts = [try HostPattern("h")]
        let first = try run.fetch("https://h/a/page")
        run.challenge(first, scheme)
        run.answer(first, user: "bob", "old")
        run.respond(first, 200)
        run.now = age
        return run
    }

    private func crowd(
        _ run: inout TableRun, _ count: Int = 50, change: (inout FetchRunParams) -> Void = { _ in }
    ) throws -> [FetchID] {
        try (1...count).map { try run.fetch("https://h/a/\($0)", client: $0, change: change) }
    }

    @Test("Rule 22: an aged password is sent by one fetch; each acceptance doubles the number")
    func anAgedPasswordIsSentByOneFetchThenByMore() throws {
        var run = try session()
        let ids = try crowd(&run)
        #expect(run.transferring == [ids[0]])
        #expect(run.table.waitingCount == 49)
        run.respond(ids[0], 200)
        #expect(run.transferring == Array(ids[1...6]))
        run.respond(ids[1], 200)
        #expect(run.transferring == Array(ids[2...13]))
        for id in ids[2...4] { run.respond(id, 200) }
        #expect(run.table.waitingCount == 0)
        #expect(ids.allSatisfy { run.last($0)?.authorization?.revealed == basic("bob", "old") })
        for id in run.transferring { run.respond(id, 200) }
        #expect(run.results.values.allSatisfy { $0.exchanges <= 2 && $0.response.status == 200 })
    }

    @Test("Rule 22: a changed password costs one failed login")
    func aChangedPasswordCostsOneFailedLogin() throws {
        var run = try session()
        let ids = try crowd(&run)
        run.serve(password: "new")
        #expect(run.sent.filter { $0 == basic("bob", "old") }.count == 2, "one of them was accepted before")
        #expect(run.asking == [ids[0]])
        run.answer(ids[0], user: "bob", "new")
        run.serve(password: "new")
        #expect(run.results.count == 51)
        #expect(run.challenges.count == 2)
        #expect(run.sent.filter { $0 == basic("bob", "old") }.count == 2)
    }

    @Test(
        "Rule 22: without preemption a changed password costs one failed login",
        arguments: ["Basic realm=\"r\"", "NTLM"])
    func withoutPreemptionAChangedPasswordCostsOneFailedLogin(scheme: String) throws {
        var run = try session(scheme)
        let before = run.requests.count
        let ids = try crowd(&run) { $0.preemption = .never }
        for id in ids { run.challenge(id, scheme) }
        #expect(before == 1)
        #expect(run.transferring == [ids[0]])
        run.challenge(ids[0], scheme)
        #expect(run.transferring.isEmpty)
        #expect(run.asking == [ids[0]])
    }

    @Test("Rule 22: an aged credential of the fetch itself costs one failed login")
    func anAgedCredentialOfTheFetchItselfCostsOneFailedLogin() throws {
        for preemptive in [true, false] {
            var run = try session()
            let ids = try crowd(&run) {
                $0.credential = login("bob", "old")
                $0.preemption = preemptive ? .session : .never
            }
            run.serve(password: "new")
            #expect(run.sent.filter { $0 == basic("bob", "old") }.count == 2)
            #expect(run.asking == [ids[0]])
        }
    }

    @Test("Rule 22: a credential accepted less than two seconds ago is sent by three")
    func aCredentialThatWasJustAcceptedIsSentByThree() throws {
        var run = try session(age: Limits.acceptanceAge - .milliseconds(1))
        let ids = try crowd(&run)
        #expect(run.transferring == Array(ids.prefix(3)))
        run.serve(password: "new")
        #expect(run.sent.filter { $0 == basic("bob", "old") }.count == 1 + 3)
        #expect(run.asking == [ids[0]])
    }

    @Test("Rule 22: a program that polls permits no more than three failed logins")
    func aProgramThatPollsPermitsNoMoreThanThree() throws {
        var run = try session(age: .zero)
        for _ in 1...20 {
            run.now += .milliseconds(100)
            let poll = try run.fetch("https://h/a/poll")
            run.respond(poll, 200)
        }
        let before = run.sent.count
        run.now += .milliseconds(100)
        _ = try crowd(&run)
        run.serve(password: "new")
        #expect(run.sent.dropFirst(before).filter { $0 == basic("bob", "old") }.count == 3)
    }

    @Test("Rule 22: an acceptance counts for two seconds")
    func anAcceptanceCountsForTwoSeconds() throws {
        var run = try session()
        let first = try run.fetch("https://h/a/1")
        run.respond(first, 200)
        run.now += Limits.acceptanceAge - .milliseconds(1)
        let ids = try crowd(&run, 3)
        #expect(run.transferring == ids)
        // A server error does not count as acceptance.
        for id in ids { run.respond(id, 503) }
        run.now += .milliseconds(1)
        let later = try crowd(&run, 3)
        #expect(run.transferring == [later[0]])
    }

    @Test("Rule 22: a slow response lets one more fetch try at a time")
    func aSlowResponseLetsOneMoreFetchTryAtATime() throws {
        var run = try session()
        let ids = try crowd(&run, 4)
        run.now += Limits.knownVerdictWait - .milliseconds(1)
        for id in ids { run.expire(id) }
        #expect(run.transferring == [ids[0]])
        run.now += .milliseconds(1)
        for id in ids { run.expire(id) }
        #expect(run.transferring == [ids[0], ids[1]])
        #expect(run.table.deadline(of: ids[2]) == run.now + Limits.knownVerdictWait)
        run.now += Limits.knownVerdictWait - .milliseconds(1)
        run.tick()
        #expect(run.transferring == [ids[0], ids[1]])
        // The first fetch is a long poll; the response to the second one is the verdict for the others.
        run.respond(ids[1], 200)
        #expect(run.transferring == [ids[0], ids[2], ids[3]])
    }

    @Test("Rule 22: a fetch that ends passes its attempt to the next, unless the server may yet check it")
    func aFetchThatEndsPassesItsAttemptToTheNext() throws {
        var run = try session()
        let ids = try crowd(&run, 3)
        run.abort(ids[0])
        #expect(run.transferring == [])
        run.now += Limits.knownVerdictWait
        run.tick()
        #expect(run.transferring == [ids[1]])
        run.fail(ids[1])
        run.now += Limits.knownVerdictWait
        run.tick()
        #expect(run.transferring == [ids[2]])
        #expect(run.table.waitingCount == 0)
    }

    @Test(
        "Rule 22: a connection that ends without a response does not free the attempt, unless nothing was sent",
        arguments: [TransferFailure.Kind.connectionLost, .timedOut, .malformedResponse],
        [true, false])
    func aConnectionThatEndsWithoutAResponseDoesNotFreeTheAttempt(kind: TransferFailure.Kind, isSent: Bool) throws {
        var run = try session()
        let ids = try crowd(&run, 3)
        var failure = TransferFailure(kind, "detail")
        failure.hasSentRequest = isSent
        run.fail(ids[0], failure)
        #expect(run.transferring == (isSent ? [] : [ids[1]]))
    }

    @Test("Rule 22: with a server that never responds, one program in two seconds sends a known login")
    func withAServerThatNeverRespondsFewSendALogin() throws {
        var run = try session()
        let before = run.sent.count
        _ = try crowd(&run)
        var failure = TransferFailure(.connectionLost, "detail")
        failure.hasSentRequest = true
        for second in 0..<20 {
            while let id = run.transferring.first { run.fail(id, failure) }
            #expect(run.sent.count - before == 1 + second / 2)
            run.now += .seconds(1)
            run.tick()
        }
    }

    @Test(
        "Rule 22: where a login is not wanted, the others that wait do not send it either",
        arguments: ["Basic realm=\"elsewhere\"", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"", "Bearer", nil])
    func whereALoginIsNotWantedTheOthersDoNotSendIt(challenge: String?) throws {
        var run = try session()
        let ids = try crowd(&run)
        let before = run.sent.count
        for _ in 0..<3 {
            for id in run.transferring {
                if let challenge { run.challenge(id, challenge) } else { run.respond(id, 401) }
            }
        }
        #expect(run.sent[before...].filter { $0 == basic("bob", "old") }.isEmpty)
        #expect(run.last(ids[1])?.authorization == nil)
    }

    @Test("Rule 22: a refusal by a SOCKS proxy is one, and its silence counts as lost")
    func aRefusalByASOCKSProxyIsOne() throws {
        for isRefused in [true, false] {
            var run = TableRun(proxy: ProxyEndpoint(type: .socks, host: "p", port: 1080))
            let first = try run.fetch("http://h/")
            run.fail(first, TransferFailure(.cannotConnect, "detail", cause: .proxyLoginRefused))
            run.answer(first, user: "out", "old")
            run.respond(first, 200)
            let ids = try (1...20).map { try run.fetch("http://h/\($0)", client: $0) }
            #expect(run.transferring == Array(ids[...2]))
            var failure = TransferFailure(
                .cannotConnect, "detail", cause: isRefused ? .proxyLoginRefused : .proxyRefused(status: nil))
            failure.hasUnansweredLogin = !isRefused
            run.fail(ids[0], failure)
            let sending = run.transferring.filter { run.last($0)?.proxy?.password != nil }
            #expect(sending == Array(ids[1...2]), "\(isRefused)")
        }
    }

    @Test("Rule 22: a fetch that waits to log in at the server is no attempt at the proxy")
    func aFetchThatWaitsForTheServerIsNoAttemptAtTheProxy() throws {
        var run = TableRun(proxy: wayOut)
        let first = try run.fetch("http://h/a/")
        run.challengeFromProxy(first)
        run.answer(first, user: "out", "pw")
        run.challenge(first)
        run.answer(first, user: "bob", "old")
        run.respond(first, 200)
        run.now = Limits.acceptanceAge
        run.respond(try run.fetch("http://j/"), 200)
        let ids = try (1...6).map { try run.fetch("http://h/a/\($0)", client: $0) }
        #expect(run.transferring == [ids[0]])
        let other = try run.fetch("http://j/", client: 7)
        #expect(run.transferring == [ids[0], other])
    }

    @Test("Rule 22: an aged password of a proxy costs one failed login")
    func anAgedPasswordOfAProxyCostsOneFailedLogin() throws {
        for url in ["http://h/a/", "https://h/a/"] {
            var run = TableRun(proxy: wayOut)
            let first = try run.fetch(url)
            run.challengeFromProxy(first)
            run.answer(first, user: "out", "old")
            run.respond(first, 200)
            run.now = Limits.acceptanceAge
            let ids = try (1...20).map { try run.fetch(url + "\($0)", client: $0) }
            #expect(run.transferring == [ids[0]])
            run.challengeFromProxy(ids[0])
            while let id = run.transferring.first {
                #expect(run.last(id)?.proxyLogin == nil)
                run.challengeFromProxy(id)
            }
            #expect(run.asking == [ids[0]])
            run.answer(ids[0], user: "out", "new")
            run.respond(ids[0], 200)
            #expect(run.transferring.count == 3)
            while let id = run.transferring.first {
                #expect(run.last(id)?.proxyLogin == basic("out", "new"))
                run.respond(id, 200)
            }
            #expect(run.results.count == 21)
        }
    }

    /// Behind a forwarding proxy, a server can send 407 as well: the login is not forgotten then, and not sent by every fetch.
    @Test("Rule 22: a credential that another server may have refused is sent by one fetch, after a challenge")
    func aCredentialThatAnotherServerMayHaveRefusedIsSentByOneFetch() throws {
        var run = TableRun(proxy: wayOut)
        let first = try run.fetch("http://h/a/")
        run.challengeFromProxy(first)
        run.answer(first, user: "out", "pw")
        run.respond(first, 200)
        let trapped = try run.fetch("http://evil/")
        run.challengeFromProxy(trapped)
        #expect(run.asking == [trapped])
        let ids = try (1...5).map { try run.fetch("http://h/a/\($0)", client: $0 + 1) }
        #expect(ids.allSatisfy { run.last($0)?.proxyLogin == nil })
        for id in ids { run.challengeFromProxy(id) }
        #expect(ids.allSatisfy { run.isWaiting($0) })
        run.answer(trapped, .cancel)
        #expect(run.transferring == [ids[0]])
        #expect(run.last(ids[0])?.proxyLogin == basic("out", "pw"))
        run.respond(ids[0], 200)
        #expect(run.transferring == Array(ids[1...3]))
        for id in ids[1...4] { run.respond(id, 200) }
        let next = try run.fetch("http://h/a/next")
        #expect(run.last(next)?.proxyLogin == basic("out", "pw"))
    }

    /// The fetches need a login at both; no two of them hold a lease that the other waits for.
    @Test func aServerAndAProxyAreTriedTogether() throws {
        var run = TableRun(proxy: wayOut)
        let first = try run.fetch("https://h/a/")
        run.challengeFromProxy(first)
        run.answer(first, user: "out", "pw")
        run.challenge(first)
        run.answer(first, user: "bob", "pw")
        run.respond(first, 200)
        run.now = Limits.acceptanceAge
        let ids = try (1...3).map { try run.fetch("https://h/a/\($0)", client: $0) }
        #expect(run.transferring == [ids[0]])
        run.respond(ids[0], 200)
        #expect(run.transferring == [ids[1], ids[2]])
    }

    /// An earlier login does not prove that the password is still valid.
    @Test("Rule 22: a connection that was logged in earlier proves nothing")
    func aConnectionThatWasLoggedInEarlierProvesNothing() throws {
        var run = try session("NTLM", age: Limits.connectionAge)
        let first = try run.fetch("https://h/a/")
        run.challenge(first, "NTLM")
        #expect(run.last(first)?.needsNewConnection == true)
        run.respond(first, 200)
        run.now += Limits.connectionAge - .milliseconds(1)
        let second = try run.fetch("https://h/a/")
        run.challenge(second, "NTLM")
        #expect(run.last(second)?.needsNewConnection == false)
        run.receive(second, 200, []) { $0.reusedConnection = true }
        run.now += .milliseconds(1)
        let third = try run.fetch("https://h/a/")
        run.challenge(third, "NTLM")
        #expect(run.last(third)?.needsNewConnection == true)
    }

    @Test("Rule 22: a request on a connection that has logged in earlier is no attempt, one on a new connection is")
    func aRequestOnAConnectionThatHasLoggedInIsNoAttempt() throws {
        var run = try session("NTLM", age: .seconds(1))
        let ids = try crowd(&run)
        for id in ids { run.challenge(id, "NTLM") }
        #expect(run.transferring == Array(ids[...2]))
        for id in ids[...6] { run.report(id, .reusesConnection) }
        #expect(run.transferring == Array(ids[...9]), "three have reported nothing")
        // The server has closed the other connections, and the password is another one now.
        run.challenge(ids[7], "NTLM")
        #expect(run.asking == [ids[7]])
        #expect(run.transferring == Array(ids[...6] + ids[8...9]))
        for id in ids[...6] { run.receive(id, 200, []) { $0.reusedConnection = true } }
        #expect(run.results.count == 8)
    }

    @Test("Rule 22: if connections that have logged in end with the request, each new login is an attempt")
    func ifConnectionsThatHaveLoggedInEndEachNewLoginIsAnAttempt() throws {
        var run = try session("NTLM", age: .seconds(1))
        let ids = try crowd(&run)
        for id in ids { run.challenge(id, "NTLM") }
        for id in ids { run.report(id, .reusesConnection) }
        #expect(run.transferring == ids)
        var failure = TransferFailure(.connectionLost, "detail", cause: .loginConnectionEnded)
        failure.hasSentRequest = true
        for id in ids { run.fail(id, failure) }
        #expect(run.transferring == Array(ids[...2]))
        #expect(ids[...2].allSatisfy { run.last($0)?.needsNewConnection == true })
        run.challenge(ids[0], "NTLM")
        #expect(run.asking == [ids[0]])
        #expect(ids[3...].allSatisfy { run.last($0)?.handshake == nil })
    }

    @Test("Rule 22: a kept connection that ends after the login was refused does not lead to another one")
    func aKeptConnectionThatEndsAfterTheRefusal() throws {
        var run = try session("NTLM", age: .seconds(1))
        let ids = try crowd(&run, 5)
        for id in ids { run.challenge(id, "NTLM") }
        run.report(ids[2], .reusesConnection)
        run.challenge(ids[0], "NTLM")
        #expect(run.asking == [ids[0]])
        run.fail(ids[2], TransferFailure(.connectionLost, "detail", cause: .loginConnectionEnded))
        #expect(run.last(ids[2])?.handshake == nil)
    }

    @Test("Rule 22: a tunnel is the verdict on the login to the proxy, however slow the server is")
    func aTunnelIsTheVerdictOnTheLoginToTheProxy() throws {
        var run = TableRun(proxy: wayOut)
        let ids = try (1...20).map { try run.fetch("https://h/a/\($0)", client: $0) }
        for id in ids { run.challengeFromProxy(id) }
        run.answer(ids[0], user: "out", "pw")
        #expect(run.transferring == [ids[0]])
        run.report(ids[0], .opensTunnel)
        #expect(run.transferring == Array(ids[...3]))
        // Nothing is lost if the server fails then.
        for id in ids[...3] {
            run.report(id, .opensTunnel)
            var failure = TransferFailure(.tlsFailed, "detail")
            failure.hasSentRequest = true
            run.fail(id, failure)
        }
        #expect(run.transferring.count > 3)
    }
}

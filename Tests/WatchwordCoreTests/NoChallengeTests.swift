import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// A 401 or 407 without a challenge, to a login that was sent unasked: SEMANTICS rule 1, SECURITY-RULES R11.
@Suite struct NoChallengeTests {
    private static let url = "https://api.example/v1/x"

    /// Returns a table in whose session this token was accepted.
    private func table(_ token: String = "old", hasRule: Bool = false) throws -> TableRun {
        var run = TableRun()
        if hasRule { run.tokens = OAuthRules([TokenRun.rule]) }
        let fetch = try run.fetch(Self.url, client: 9)
        run.challenge(fetch, "Bearer realm=\"r\"")
        let credential = LoginCredential(form: .token, secret: secret(token), persistence: .forSession)
        if hasRule {
            run.obtained(fetch, .token(credential))
        } else {
            run.answer(fetch, .credential(.login(credential)))
        }
        run.respond(fetch, 200)
        run.now += .seconds(20)
        return run
    }

    private func reasons(_ run: TableRun, _ fetch: FetchID) -> [String]? {
        run.results[fetch]?.unanswered?.schemes.map { "\($0.name) \($0.reason.rawValue)" }
    }

    private func authorizations(_ run: TableRun, _ fetch: FetchID) -> [String?] {
        run.requests[fetch]?.map { $0.authorization?.revealed } ?? []
    }

    @Test("Rule 1: after a 401 without a challenge the request is sent once without the login")
    func theRequestIsSentOnceWithoutTheLogin() throws {
        var run = try table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401)
        run.respond(fetch, 401)
        #expect(authorizations(run, fetch) == ["Bearer old", nil])
        #expect(run.results[fetch]?.response.status == 401 && reasons(run, fetch) == ["Bearer noChallenge"])
        #expect(run.results[fetch]?.unanswered?.isOfProxy == false && run.challenges.count == 1)
        #expect(run.table.context.session.count == 1, "the login is not deleted")
        // It is not sent there unasked again, but elsewhere.
        let again = try run.fetch(Self.url + "?again")
        run.respond(again, 401)
        #expect(authorizations(run, again) == [nil] && reasons(run, again) == ["Bearer noChallenge"])
        let below = try run.fetch("https://api.example/v1/below/x")
        run.respond(below, 200)
        #expect(authorizations(run, below) == [nil] && run.results[below]?.unanswered == nil)
    }

    @Test func onlyTheDirectoryOfTheResponseIsConcerned() throws {
        var run = try table()
        let fetch = try run.fetch("https://api.example/v1/admin/x")
        run.respond(fetch, 401)
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.response.status == 200 && reasons(run, fetch) == nil)
        let other = try run.fetch(Self.url)
        run.respond(other, 200)
        #expect(authorizations(run, other) == ["Bearer old"])
    }

    @Test("Rule 1: only a challenge asks, and counts the login as refused")
    func onlyAChallengeAsks() throws {
        var run = try table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401)
        run.challenge(fetch, "Bearer realm=\"r\"")
        #expect(authorizations(run, fetch) == ["Bearer old", nil] && run.question(fetch)?.previousFailureCount == 1)
        #expect(run.table.context.session.count == 1)
        run.answer(
            fetch,
            .credential(.login(LoginCredential(form: .token, secret: secret("new"), persistence: .forSession))))
        run.respond(fetch, 200)
        let next = try run.fetch(Self.url)
        run.respond(next, 200)
        #expect(authorizations(run, next) == ["Bearer new"])
    }

    /// The first program had nobody to ask.
    @Test("Rule 1: where the login was answered without a challenge before, its own challenge asks")
    func aLaterProgramIsAsked() throws {
        var run = try table()
        let silent = try run.fetch(Self.url) { $0.interaction = .none }
        run.respond(silent, 401)
        run.challenge(silent, "Bearer realm=\"r\"")
        #expect(run.results[silent]?.response.status == 401)
        let fetch = try run.fetch(Self.url)
        run.challenge(fetch, "Bearer realm=\"r\"")
        #expect(authorizations(run, fetch) == [nil, "Bearer old"])
        run.respond(fetch, 401)
        #expect(run.question(fetch)?.previousFailureCount == 1 && run.table.context.session.count == 1)
        // Once it is accepted there, it is sent unasked again.
        run.abort(fetch)
        let good = try run.fetch(Self.url)
        run.challenge(good, "Bearer realm=\"r\"")
        run.respond(good, 200)
        let next = try run.fetch(Self.url)
        #expect(authorizations(run, next) == ["Bearer old"])
    }

    @Test("Rule 1: a login that answered a challenge may be answered without one, with the reason")
    func aLoginThatWasAskedForIsAResult() throws {
        var run = TableRun()
        let fetch = try run.fetch()
        run.challenge(fetch)
        run.answer(fetch, user: "bob", "pw")
        run.respond(fetch, 401)
        #expect(reasons(run, fetch) == ["Basic noChallenge"] && run.challenges.count == 1 && run.sent.count == 1)
        let plain = try run.fetch("http://h/b/")
        run.respond(plain, 401)
        #expect(run.results[plain]?.response.status == 401 && reasons(run, plain) == nil)
    }

    @Test("Rule 1: a login that is answered without a challenge ends the question of all fetches that wait")
    func theQuestionEndsForAllThatWait() throws {
        var run = TableRun()
        let fetches = try (1...3).map { try run.fetch(client: $0) }
        for fetch in fetches { run.challenge(fetch) }
        #expect(run.asking.count == 1)
        run.answer(fetches[0], user: "bob", "pw")
        run.respond(fetches[0], 401)
        #expect(fetches.map { run.results[$0]?.response.status } == [401, 401, 401])
        #expect(run.challenges.count == 1 && run.sent.count == 1)
    }

    @Test("Rule 1: a token is renewed without a person, and sent")
    func aTokenIsRenewed() throws {
        var run = try table(hasRule: true)
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401)
        #expect(run.tokenQuery(fetch)?.mayAsk == false && run.tokenQuery(fetch)?.needsLogin == false)
        run.obtained(fetch, .token(LoginCredential(form: .token, secret: secret("new"), persistence: .forSession)))
        run.respond(fetch, 200)
        #expect(authorizations(run, fetch) == ["Bearer old", "Bearer new"])
        #expect(run.results[fetch]?.response.status == 200 && run.challenges.isEmpty)
        let next = try run.fetch(Self.url)
        #expect(authorizations(run, next) == ["Bearer new"])
    }

    @Test(
        "Rule 1: without a new token the request is sent without a login",
        arguments: [TokenOutcome.nothing, .needsConsent, .failed(.unexpectedEvent)])
    func withoutANewTokenTheRequestIsSentWithoutALogin(outcome: TokenOutcome) throws {
        var run = try table(hasRule: true)
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401)
        run.obtained(fetch, outcome)
        #expect(authorizations(run, fetch) == ["Bearer old", nil])
        // The challenge begins the search anew, now with somebody to ask.
        run.challenge(fetch, "Bearer realm=\"r\"")
        #expect(run.tokenQuery(fetch)?.mayAsk == true && run.tokenQuery(fetch)?.needsLogin == false)
    }

    @Test func aRenewedTokenThatIsAnsweredInTheSameWayIsNotRenewedAgain() throws {
        var run = try table(hasRule: true)
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401)
        run.obtained(fetch, .token(LoginCredential(form: .token, secret: secret("new"), persistence: .forSession)))
        run.respond(fetch, 401)
        #expect(authorizations(run, fetch) == ["Bearer old", "Bearer new", nil])
        run.challenge(fetch, "Bearer realm=\"r\"")
        #expect(run.tokenQuery(fetch)?.needsLogin == true && run.sent.suffix(2) == ["Bearer old", "Bearer new"])
        // A later fetch renews it, although nothing is sent unasked.
        let later = try run.fetch(Self.url, client: 2)
        run.respond(later, 401)
        #expect(run.tokenQuery(later)?.mayAsk == false)
    }

    @Test("Rule 1: Digest answers the challenge that follows with its nonce")
    func digestAnswersTheChallengeThatFollows() throws {
        var run = try MachineRun()
        run.start()
        run.challengeDigest(nonce: "one")
        run.answer(user: "bob", "pw")
        run.respond(200)
        var next = try MachineRun(session: run.session)
        next.start()
        next.respond(401)
        next.challengeDigest(nonce: "two")
        #expect(next.challenges.isEmpty && next.authorizations.map { $0 == nil } == [false, true, false])
        #expect(next.authorizations[2]?.contains("nonce=\"two\"") == true)
    }

    @Test("Rule 1: the own login that was sent unasked is not sent again")
    func theOwnLoginThatWasSentUnaskedIsNotSentAgain() throws {
        var run = try MachineRun("https://h/") {
            $0.credential = login("bob", "own")
            $0.preemption = .always
        }
        run.start()
        run.respond(401)
        run.challengeBasic()
        #expect(run.authorizations == [basic("bob", "own"), nil] && run.challenges[0].previousFailureCount == 1)
    }

    @Test("Rule 1: a 407 without a challenge leads to one request without the login to the proxy")
    func aProxyIsAskedOnceWithoutTheLogin() throws {
        var run = TableRun(proxy: wayOut)
        let first = try run.fetch()
        run.challengeFromProxy(first)
        run.answer(first, user: "out", "pw")
        run.respond(first, 200)
        let fetch = try run.fetch()
        run.receive(fetch, 407, []) { $0.isFromProxy = true }
        run.receive(fetch, 407, []) { $0.isFromProxy = true }
        #expect(run.requests[fetch]?.map(\.proxyLogin) == [basic("out", "pw"), nil])
        #expect(reasons(run, fetch) == ["Basic noChallenge"] && run.results[fetch]?.unanswered?.isOfProxy == true)
        let next = try run.fetch()
        #expect(run.request(next)?.proxyLogin == nil)
        run.challengeFromProxy(next)
        #expect(run.request(next)?.proxyLogin == basic("out", "pw"))
        // A 407 of somebody else is an ordinary response.
        let other = try run.fetch()
        run.respond(other, 407)
        #expect(run.results[other]?.response.status == 407 && reasons(run, other) == nil)
    }

    @Test func theDirectoriesHaveABound() throws {
        var session = SessionCache(limits: SessionLimits(paths: 2))
        let space = Challenger.server(Origin(scheme: .https, host: "h", port: 443)).space(realm: "r", .httpBasic)
        session.remember(login("bob", "pw"), for: space, path: "/", digest: nil, now: .zero)
        func isSent(_ path: ExactText) -> Bool {
            session.preemptiveEntry(at: Challenger(space), path: path, now: .zero) != nil
        }
        for path in ["/a/x", "/a/b/x", "/b/x"] as [ExactText] {
            session.withhold(login("bob", "pw"), for: space, owner: nil, at: path)
        }
        #expect(!isSent("/a/y") && !isSent("/a/b/y") && !isSent("/b/y") && isSent("/c/y") && isSent("/a"))
        session.withhold(login("bob", "pw"), for: space, owner: nil, at: "/c/x")
        #expect(!isSent("/d/y") && session.count == 1)
        session.remember(login("bob", "pw"), for: space, path: "/d/y", digest: nil, now: .zero)
        #expect(isSent("/d/y"))
    }

    @Test func aDirectoryIsTheSameInAnyForm() throws {
        var session = SessionCache()
        let space = Challenger.server(Origin(scheme: .https, host: "h", port: 443)).space(realm: "r", .httpBasic)
        session.remember(login("bob", "pw"), for: space, path: "/", digest: nil, now: .zero)
        func isSent(_ path: ExactText) -> Bool {
            session.preemptiveEntry(at: Challenger(space), path: path, now: .zero) != nil
        }
        session.withhold(login("bob", "pw"), for: space, owner: nil, at: "/%61/x")
        #expect(!isSent("/a/y") && !isSent("/%61/y") && isSent("/b/y"))
        session.remember(login("bob", "pw"), for: space, path: "/a/x", digest: nil, now: .zero)
        #expect(isSent("/a/y") && isSent("/%61/y"))
    }
}

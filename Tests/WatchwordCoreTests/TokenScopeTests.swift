import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Tokens with scopes: SEMANTICS rule 29, RFC 6750 section 3.1.
@Suite struct TokenScopeTests {
    private func token(_ text: String, _ persistence: Persistence = .forSession) -> ChallengeAnswer {
        .credential(.login(LoginCredential(form: .token, secret: secret(text), persistence: persistence)))
    }

    private func wants(_ scope: String?, isInsufficient: Bool = false) -> (String, String) {
        let error = isInsufficient ? ", error=\"insufficient_scope\"" : ""
        return ("WWW-Authenticate", "Bearer realm=\"r\"\(scope.map { ", scope=\"\($0)\"" } ?? "")\(error)")
    }

    private func run(
        _ path: String, _ session: SessionCache = SessionCache(), change: (inout FetchRunParams) -> Void = { _ in }
    ) throws -> MachineRun {
        var run = try MachineRun("https://h/\(path)", session: session, change: change)
        run.start()
        return run
    }

    /// Responds like a registry, in which each scope has its own token.
    private func serve(_ run: inout MachineRun, _ scope: String) {
        for _ in 0..<5 {
            let sent = run.authorizations.last.flatMap { $0 }
            if sent == "Bearer \(scope)" { return run.respond(200) }
            run.respond(401, wants(scope, isInsufficient: sent != nil))
            if run.isAsking { run.answer(token(scope)) }
        }
    }

    @Test("Rule 29: two scopes in turn cost two questions")
    func twoScopesInTurnCostTwoQuestions() throws {
        var (session, questions) = (SessionCache(), 0)
        for number in 0..<6 {
            let scope = number % 2 == 0 ? "a" : "b"
            var run = try run("v2/\(scope)/x", session)
            serve(&run, scope)
            #expect(run.result?.response.status == 200)
            #expect(number < 2 || run.requests.count == 1, "each token is sent preemptively where it was accepted")
            questions += run.challenges.count
            session = run.session
        }
        #expect(questions == 2)
    }

    @Test("Rule 29: for one folder the scope of the challenge selects the token")
    func forOneFolderTheChallengeTellsWhichTokenIsMeant() throws {
        var (session, sent) = (SessionCache(), [String?]())
        for scope in ["a", "b", "a", "b", "b"] {
            var run = try run("x", session)
            serve(&run, scope)
            sent += run.authorizations
            session = run.session
        }
        let first = ["Bearer a", "Bearer a", nil]
        #expect(sent == [nil, first[0], first[1], "Bearer b", nil, "Bearer a", nil, "Bearer b", nil, "Bearer b"])
    }

    /// A token that was accepted with and without a scope is stored once.
    @Test("Rule 16: one token, with and without a scope, is sent before a challenge")
    func oneTokenWithAndWithoutAScopeIsSentBeforeAChallenge() throws {
        var session = SessionCache()
        for scope in [nil, "a"] {
            var run = try run("v2/x", session) { $0.preemption = .never }
            run.respond(401, wants(scope))
            if run.isAsking { run.answer(token("T")) }
            run.respond(200)
            session = run.session
        }
        #expect(session.count == 2)
        #expect(try run("v2/x", session).authorizations == ["Bearer T"])
    }

    @Test("Rules 29 and K4: insufficient scope does not count as a refusal, and the same token is not sent again")
    func insufficientScopeIsNotARefusalAndTheSameTokenIsNotSentAgain() throws {
        var run = try run("x")
        run.respond(401, wants(nil))
        run.answer(token("t"))
        run.respond(401, wants("wide", isInsufficient: true))
        #expect(run.challenges.last?.previousFailureCount == 0)
        #expect(run.challenges.last?.error == nil)
        #expect(run.challenges.last?.offers[0].params["scope"] == "wide")
        run.answer(token("t"))
        #expect(run.requests.count == 2)
        #expect(run.challenges.last?.error == .credentialAlreadyRefused)
        run.answer(token("u"))
        run.respond(200)
        #expect(run.authorizations == [nil, "Bearer t", "Bearer u"])
    }

    @Test("Rule 29: a token that is too narrow stays for the scope it is good for")
    func aTokenThatIsTooNarrowStaysForTheScopeItIsGoodFor() throws {
        var first = try run("a/x")
        first.respond(401, wants("a"))
        first.answer(token("t"))
        first.respond(200)
        var second = try run("a/y", first.session)
        #expect(second.authorizations == ["Bearer t"])
        second.respond(401, wants("b", isInsufficient: true))
        #expect(second.isAsking)
        second.answer(.proceed)
        let third = try run("a/x", second.session)
        #expect(third.authorizations == ["Bearer t"])
    }

    @Test("Rules 29 and K4: a refused token is forgotten for every scope")
    func aRefusedTokenIsForgottenForEveryScope() throws {
        var session = SessionCache()
        for scope in ["a", "b"] {
            var run = try run("\(scope)/x", session)
            run.respond(401, wants(scope))
            if run.isAsking { run.answer(token("t")) }
            run.respond(200)
            session = run.session
        }
        #expect(session.count == 2)
        var refused = try run("a/x", session)
        refused.respond(401, ("WWW-Authenticate", "Bearer realm=\"r\", scope=\"a\", error=\"invalid_token\""))
        #expect(refused.challenges.last?.previousFailureCount == 1)
        #expect(refused.session.count == 0)
    }

    @Test("Rule 29: a wider token serves every scope that it includes")
    func aWiderTokenServesEveryScopeThatItIncludes() throws {
        var first = try run("a/x")
        first.respond(401, wants("read write"))
        first.answer(token("t"))
        first.respond(200)
        var second = try run("b/x", first.session)
        second.respond(401, wants("write"))
        #expect(second.authorizations == [nil, "Bearer t"])
        var third = try run("c/x", first.session)
        third.respond(401, wants("write admin"))
        #expect(third.isAsking)
    }

    @Test("Rule 29: the fetch's own token is sent once for a scope")
    func theFetchsOwnTokenIsSentOnceForAScope() throws {
        var run = try run("x") { $0.credential = LoginCredential(form: .token, secret: secret("own")) }
        run.respond(401, wants("a"))
        run.respond(401, wants("a", isInsufficient: true))
        #expect(run.isAsking)
        #expect(run.authorizations == [nil, "Bearer own"])
        #expect(run.challenges.last?.previousFailureCount == 0)
    }

    /// Each fetch waits only for the answer to its own question.
    @Test("Rule 20: two scopes are two questions")
    func twoScopesAreTwoQuestions() throws {
        var run = TableRun()
        let ids = try (0..<4).map { _ in try run.fetch("https://h/x") }
        for (number, id) in ids.enumerated() {
            run.challenge(id, "Bearer realm=\"r\", scope=\"\(number % 2 == 0 ? "a" : "b")\"")
        }
        #expect(ids.map { run.question($0) != nil } == [true, true, false, false])
    }

    @Test func scopesAreSetsOfWords() throws {
        #expect(BearerScope("a  b") == BearerScope("b a"))
        #expect(BearerScope(" ") == nil && BearerScope(nil) == nil)
        let both = try #require(BearerScope("a b"))
        #expect(try both.covers(#require(BearerScope("b"))))
        #expect(try !#require(BearerScope("ab")).covers(both))
    }
}

import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Fetches that are challenged for a token which the broker can obtain: SEMANTICS rules 29 and 30.
@Suite struct TokenFetchTests {
    private static let url = "https://api.example/v1/x"
    private let editor = Subject(
        .exe, "/usr/bin/editor", file: Subject.File(inode: 1, changed: 1), isSystemFile: true)

    private func table(
        _ sharing: FetchTable.Sharing = .user, change: (inout OAuthRule) -> Void = { $0.scopes = [] }
    ) -> TableRun {
        var (run, rule) = (TableRun(sharing: sharing), TokenRun.rule)
        change(&rule)
        run.tokens = OAuthRules([rule])
        return run
    }

    private func wants(_ scope: String? = nil, error: String? = nil, realm: String = "r") -> (String, String) {
        let scope = scope.map { ", scope=\"\($0)\"" } ?? ""
        return ("WWW-Authenticate", "Bearer realm=\"\(realm)\"\(scope)\(error.map { ", error=\"\($0)\"" } ?? "")")
    }

    private func token(_ text: String, _ scope: String? = nil, change: (inout LoginCredential) -> Void = { _ in })
        -> TokenOutcome
    {
        var credential = LoginCredential(form: .token, secret: secret(text), persistence: .forSession)
        (credential.path, credential.scope) = ("/v1", BearerScope(scope))
        change(&credential)
        return .token(credential)
    }

    private let login = TokenOutcome.login(
        TokenLogin(
            issuer: "https://as.example", clientID: "me", scopes: ["read"], url: "http://127.0.0.1:7777/start/x",
            device: nil, expiresAt: .seconds(600)))

    // MARK: The query

    @Test func aChallengeStartsTheSearchForAToken() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(
            fetch, 401,
            (
                "WWW-Authenticate",
                "Bearer realm=\"r\", service=\"s\", scope=\"b a\", resource_metadata=\"https://api.example/meta\""
            ))
        let query = try #require(run.tokenQuery(fetch))
        #expect(query.url.text == Self.url && query.rule.resource == "https://api.example/v1")
        #expect(query.challenge.realm == "r" && query.challenge.service == "s" && query.scopes == ["a", "b"])
        #expect(query.challenge.metadata == "https://api.example/meta" && !query.challenge.isInsufficient)
        #expect(query.mayAsk && !query.needsLogin)
    }

    @Test func withoutARespondentNobodyMayBeAsked() throws {
        var run = table()
        let fetch = try run.fetch(Self.url, subscription: nil) { $0.interaction = .none }
        run.respond(fetch, 401, wants())
        #expect(run.tokenQuery(fetch)?.mayAsk == false)
        run.obtained(fetch, .nothing)
        #expect(run.results[fetch]?.response.status == 401)
    }

    @Test(
        "Rule 30: without a rule for the URL a respondent is asked for the token",
        arguments: [
            "https://api.example/v2", "https://api.example/", "https://other.example/v1/x",
            "https://api.example/v1/..%2Fx",
        ])
    func withoutARuleARespondentIsAsked(url: String) throws {
        var run = table()
        let fetch = try run.fetch(url)
        run.respond(fetch, 401, wants())
        #expect(run.tokenQuery(fetch) == nil && run.question(fetch)?.login == nil && run.question(fetch) != nil)
    }

    @Test func fetchesWithoutStorageObtainNoToken() throws {
        var run = table()
        let fetch = try run.fetch(Self.url) { $0.useStorage = false }
        run.respond(fetch, 401, wants())
        #expect(run.tokenQuery(fetch) == nil && run.question(fetch) != nil)
    }

    @Test func aTokenIsObtainedRatherThanAPasswordAskedFor() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, ("WWW-Authenticate", "Basic realm=\"r\""), wants())
        #expect(run.tokenQuery(fetch) != nil)
    }

    @Test func whereOnlyAPasswordIsWantedNoTokenIsObtained() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.challenge(fetch)
        #expect(run.tokenQuery(fetch) == nil && run.question(fetch) != nil)
    }

    // MARK: Outcomes

    @Test func theTokenIsUsed() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, token("t"))
        run.respond(fetch, 200)
        #expect(run.sent == ["Bearer t"] && run.results[fetch]?.authentication?.source == .keyring)
        let next = try run.fetch(Self.url)
        #expect(run.request(next)?.authorization?.revealed == "Bearer t")
    }

    @Test("Rule K10: a token is sent below the path of its rule only")
    func aTokenIsSentBelowThePathOfItsRuleOnly() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, token("t"))
        run.respond(fetch, 200)
        for url in [
            "https://api.example/v2", "https://api.example/v10", "https://api.example/v1/..%2Fv2",
            "http://api.example/v1", "https://api.example:8443/v1",
        ] {
            let other = try run.fetch(url)
            #expect(run.request(other)?.authorization == nil, "\(url)")
            run.respond(other, 401, wants())
            #expect(run.request(other) == nil && run.tokenQuery(other) == nil, "\(url)")
        }
        #expect(run.sent == ["Bearer t"])
    }

    @Test func aFailureIsThatOfTheFetch() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, .failed(FetchFailure(.loginFailed, "no such client")))
        #expect(run.failures[fetch] == FetchFailure(.loginFailed, "no such client") && run.sent.isEmpty)
    }

    @Test("Rule 30: a token that is refused leads to one login")
    func aTokenThatIsRefusedLeadsToOneLogin() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, token("t"))
        run.respond(fetch, 401, wants(error: "invalid_token"))
        #expect(run.tokenQuery(fetch)?.needsLogin == true)
        run.obtained(fetch, token("u"))
        run.respond(fetch, 401, wants(error: "invalid_token"))
        #expect(run.results[fetch]?.response.status == 401 && run.sent == ["Bearer t", "Bearer u"])
    }

    @Test func theSameTokenIsNotSentAgain() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, token("t"))
        run.respond(fetch, 401, wants(error: "invalid_token"))
        run.obtained(fetch, token("t"))
        #expect(run.sent == ["Bearer t"] && run.results[fetch]?.response.status == 401)
    }

    // MARK: Logins

    @Test("Rule 30: the question describes the login, and its answer is the token")
    func theQuestionDescribesTheLogin() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, login)
        #expect(run.question(fetch)?.login?.issuer == "https://as.example")
        run.answer(
            fetch, .credential(.login(LoginCredential(form: .token, secret: secret("t"), persistence: .forSession))))
        #expect(run.request(fetch)?.authorization?.revealed == "Bearer t")
        // The login is over, so that it is not shown for another challenge.
        run.respond(fetch, 401, wants(error: "invalid_token"))
        #expect(run.question(fetch)?.login == nil)
    }

    @Test(arguments: [ChallengeAnswer.proceed, .cancel])
    func notNowEndsTheQuestion(answer: ChallengeAnswer) throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, login)
        run.answer(fetch, answer)
        #expect(run.question(fetch) == nil && run.sent.isEmpty && run.tokenQuery(fetch) == nil)
    }

    // MARK: Scopes

    @Test(
        "Rules 29 and 30: for an insufficient scope a wider token is obtained once, with 401 and 403",
        arguments: [401, 403]
    )
    func aWiderTokenIsObtainedOnce(status: Int) throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants("write"))
        run.obtained(fetch, token("t"))
        run.respond(fetch, status, wants("write", error: "insufficient_scope"))
        let query = try #require(run.tokenQuery(fetch))
        #expect(query.challenge.isInsufficient && query.challenge.scopes == ["write"] && !query.needsLogin)
        run.obtained(fetch, token("u", "write"))
        run.respond(fetch, status, wants("write", error: "insufficient_scope"))
        #expect(run.results[fetch]?.response.status == status && run.sent == ["Bearer t", "Bearer u"])
    }

    @Test("Rule 29: without a rule, 403 is a response like any other")
    func withoutARule403IsAResponse() throws {
        var run = TableRun()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.answer(
            fetch, .credential(.login(LoginCredential(form: .token, secret: secret("t"), persistence: .forSession))))
        run.respond(fetch, 403, wants("write", error: "insufficient_scope"))
        #expect(run.results[fetch]?.response.status == 403)
    }

    @Test(arguments: [nil, "invalid_token"])
    func any403ButInsufficientScopeIsAResponse(error: String?) throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, token("t"))
        run.respond(fetch, 403, wants("write", error: error))
        #expect(run.results[fetch]?.response.status == 403)
    }

    // MARK: Other fetches

    @Test("Rule 30: fetches that wait share one token")
    func fetchesThatWaitShareOneToken() throws {
        var run = table()
        let fetches = try (1...5).map { try run.fetch(Self.url, client: $0) }
        for fetch in fetches { run.respond(fetch, 401, wants()) }
        #expect(fetches.map { run.tokenQuery($0) != nil } == [true, false, false, false, false])
        run.obtained(fetches[0], token("t"))
        run.respond(fetches[0], 200)
        #expect(run.transferring.count == 3)
        for fetch in fetches.dropFirst() { run.respond(fetch, 200) }
        #expect(run.sent == Array(repeating: "Bearer t", count: 5) && run.results.count == 5)
    }

    @Test("Rule G4: with `ask` a token is used only with consent", arguments: [Consent.once, .no])
    func aTokenIsUsedOnlyWithConsent(consent: Consent) throws {
        var run = table(.ask)
        let fetch = try run.fetch(Self.url, subject: editor)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, token("t"))
        #expect(run.confirmation(fetch)?.subject == editor && run.sent.isEmpty)
        run.confirm(fetch, consent)
        #expect(run.sent == (consent == .no ? [] : ["Bearer t"]))
        #expect(run.tokenQuery(fetch) == nil)
    }

    @Test(
        "Rule G7: consent by a login does not outlive a revocation that came while the person logged in",
        arguments: [false, true])
    func consentByALoginEndsWithARevocation(isRevoked: Bool) throws {
        var run = table(.ask)
        let fetch = try run.fetch(Self.url, subject: editor)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, login)
        #expect(run.question(fetch) != nil)
        if isRevoked { run.take(run.table.revokeGrants(number: nil, subject: nil).orders) }
        run.loggedIn(fetch, try #require(token("t").credential))
        run.respond(fetch, 200)
        #expect(run.sent == ["Bearer t"] && run.table.grants.isEmpty == isRevoked)
    }

    @Test("Rule 30: a person logs in once for a fetch, even if the token is refused late")
    func aPersonLogsInOnceForAFetch() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, login)
        run.loggedIn(fetch, try #require(token("t").credential))
        run.respond(fetch, 401, wants(error: "invalid_token"))
        let query = try #require(run.tokenQuery(fetch))
        #expect(query.needsLogin && !query.mayAsk)
        run.obtained(fetch, .nothing)
        #expect(run.results[fetch]?.response.status == 401)
    }

    @Test("Rule K10: the token of a table is not for the tables inside it")
    func theTokenOfATableIsNotForInnerTables() throws {
        var run = table()
        run.tokens = OAuthRules(
            ["https://api.example", "https://api.example/v1/x", "https://api.example/v2"].map {
                OAuthRule(resource: $0)
            })
        let fetch = try run.fetch("https://api.example/v1")
        run.respond(fetch, 401, wants())
        let query = try #require(run.tokenQuery(fetch))
        #expect(query.rule.resource == "https://api.example" && Set(query.excludedPaths) == ["/v1/x", "/v2"])
        run.obtained(fetch, token("t") { $0.range = PathRange(excluding: query.excludedPaths) })
        run.respond(fetch, 200)
        for (path, isSent) in [
            ("/v1/y", true), ("/v1/x", false), ("/v2/z", false), ("/v1/../v2", false), ("/v22", true),
            ("/v1/%78", false), ("/%76%31/y", true), ("/v1/%2578", false), ("/%76%32", false), ("//v2/z", false),
            ("/v1//x", false), ("/v2%2Fz", false), ("/v1/x;a=b", false), ("/v1/xy", true),
        ] {
            let other = try run.fetch("https://api.example\(path)")
            #expect((run.request(other)?.authorization != nil) == isSent, "\(path)")
            run.respond(other, 200)
        }
    }

    // MARK: Bound tokens

    private func bound(_ run: inout TableRun) throws -> (FetchID, ProofKey) {
        let key = try #require(ProofKey.make())
        let fetch = try run.fetch("\(Self.url)?q=1")
        run.respond(fetch, 401, wants())
        run.obtained(fetch, token("t") { $0.binding = key })
        return (fetch, key)
    }

    private func proof(_ run: TableRun, _ fetch: FetchID) throws -> Proof {
        let fields = try #require(run.request(fetch)).headers.values(of: "DPoP")
        #expect(fields.count == 1)
        return try #require(fields.first.flatMap(Proof.init))
    }

    @Test("Rule K11: a bound token is sent with the scheme DPoP and a proof for the request")
    func aBoundTokenIsSentWithAProof() throws {
        var run = table()
        let (fetch, key) = try bound(&run)
        #expect(run.sent == ["DPoP t"])
        let proof = try proof(run, fetch)
        #expect(proof.point == key.publicKey && proof.claims["htm"]?.string == "GET")
        #expect(proof.claims["htu"]?.string == Self.url && proof.claims["ath"]?.string != nil)
    }

    @Test("RFC 9449 section 9: a nonce of the resource is used once, and for later requests")
    func aNonceOfTheResourceIsUsedOnce() throws {
        var run = table()
        let (fetch, _) = try bound(&run)
        run.respond(fetch, 401, ("DPoP-Nonce", "n1"), ("WWW-Authenticate", "DPoP error=\"use_dpop_nonce\""))
        #expect(try proof(run, fetch).claims["nonce"]?.string == "n1")
        run.respond(fetch, 200, ("DPoP-Nonce", "n2"))
        let next = try run.fetch(Self.url)
        #expect(try proof(run, next).claims["nonce"]?.string == "n2")
        run.respond(next, 401, ("DPoP-Nonce", "n3"), ("WWW-Authenticate", "DPoP error=\"use_dpop_nonce\""))
        run.respond(next, 401, ("DPoP-Nonce", "n4"), ("WWW-Authenticate", "DPoP error=\"use_dpop_nonce\""))
        #expect(run.request(next) == nil, "a server that is never content does not get a third request")
    }

    @Test func aTokenThatIsNotBoundHasNoProof() throws {
        var run = table()
        let fetch = try run.fetch(Self.url)
        run.respond(fetch, 401, wants())
        run.obtained(fetch, token("t"))
        #expect(run.request(fetch)?.headers.values(of: "DPoP") == [])
    }

    // MARK: A login before the first request

    @Test func aFetchLogsInBeforeItsFirstRequest() throws {
        var run = TableRun()
        let fetch = try run.fetch(adapt: { $0.logsInFirst = true })
        #expect(run.requests[fetch] == nil && run.question(fetch)?.protectionSpace.realm == "h")
        run.answer(fetch, user: "bob", "pw")
        #expect(run.requests[fetch]?.map { $0.authorization?.revealed } == ["Basic Ym9iOnB3"])
        run.respond(fetch, 200)
        // The login of the session takes the place of the question.
        let next = try run.fetch(adapt: { $0.logsInFirst = true })
        #expect(run.requests[next]?.map { $0.authorization?.revealed } == ["Basic Ym9iOnB3"])
    }

    /// Otherwise the service would give a token with fewer permissions to anyone.
    @Test func aLoginThatIsRefusedWithoutAChallengeIsFollowedByAQuestion() throws {
        var run = TableRun()
        let first = try run.fetch(adapt: { $0.logsInFirst = true })
        run.answer(first, user: "bob", "pw")
        run.respond(first, 200)
        let fetch = try run.fetch(adapt: { $0.logsInFirst = true })
        run.respond(fetch, 401)
        #expect(run.requests[fetch]?.count == 1 && run.question(fetch) != nil)
    }

    @Test func withoutALoginNothingIsSent() throws {
        var run = TableRun()
        let fetch = try run.fetch(change: { $0.interaction = .none }, adapt: { $0.logsInFirst = true })
        run.found(fetch, [])
        #expect(run.requests[fetch] == nil && run.results[fetch]?.response.status == 401)
    }
}

extension TokenOutcome {
    fileprivate var credential: LoginCredential? { if case .token(let credential) = self { credential } else { nil } }
}

import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Tokens of the session that are renewed before they expire: SEMANTICS rule 32.
@Suite struct TokenRenewalTests {
    private func token(_ text: String, _ scope: String? = nil) -> LoginCredential {
        var credential = LoginCredential(form: .token, secret: secret(text), persistence: .forSession)
        (credential.path, credential.scope) = ("/v1", BearerScope(scope))
        return credential
    }

    private func mark(_ text: String, _ url: String = "https://api.example") throws -> TokenDigest {
        TokenDigest(secret(text), for: try FetchURL(url).origin)
    }

    /// Returns a run in which a fetch has used the token at the time 10.
    private func afterLogin(_ credential: LoginCredential) throws -> TableRun {
        var run = TableRun()
        (run.tokens, run.now) = (OAuthRules([TokenRun.rule]), .seconds(10))
        let fetch = try run.fetch("https://api.example/v1/x")
        run.challenge(fetch, "Bearer realm=\"r\", scope=\"read\"")
        run.obtained(fetch, .token(credential))
        run.respond(fetch, 200)
        return run
    }

    private func sent(_ run: inout TableRun) throws -> String? {
        let fetch = try run.fetch("https://api.example/v1/x")
        defer { run.respond(fetch, 200) }
        return run.request(fetch)?.authorization?.revealed
    }

    @Test func theLastUseOfATokenIsKnown() throws {
        let run = try afterLogin(token("t"))
        #expect(try run.table.lastUse(of: mark("t")) == .seconds(10))
        #expect(try run.table.lastUse(of: mark("u")) == nil)
        #expect(try run.table.lastUse(of: mark("t", "https://api.example:444")) == nil)
    }

    @Test("Rule 32: the new token takes the place of the old one")
    func theNewTokenTakesThePlaceOfTheOldOne() throws {
        var run = try afterLogin(token("t"))
        #expect(try sent(&run) == "Bearer t")
        try run.table.replace(mark("t"), with: token("u", "read"))
        #expect(try sent(&run) == "Bearer u")
        #expect(try run.table.lastUse(of: mark("t")) == nil && run.table.context.session.count == 1)
    }

    @Test("Rule 32: a fetch that still uses the old token does not bring it back")
    func theOldTokenDoesNotComeBack() throws {
        var run = try afterLogin(token("t"))
        let slow = try run.fetch("https://api.example/v1/x")
        #expect(run.request(slow)?.authorization?.revealed == "Bearer t")
        run.now = .seconds(20)
        try run.table.replace(mark("t"), with: token("u", "read"))
        run.respond(slow, 200)
        #expect(try run.table.lastUse(of: mark("u")) == .seconds(20), "it is a use")
        #expect(try sent(&run) == "Bearer u" && run.table.context.session.count == 1)
    }

    @Test func anotherTokenIsLeftAlone() throws {
        var run = try afterLogin(token("t"))
        try run.table.replace(mark("other"), with: token("u"))
        #expect(try sent(&run) == "Bearer t")
    }

    @Test func theScopeStaysIfTheNewTokenNamesNone() throws {
        var run = try afterLogin(token("t", "read"))
        try run.table.replace(mark("t"), with: token("u"))
        let fetch = try run.fetch("https://api.example/v1/x") { $0.preemption = .never }
        run.challenge(fetch, "Bearer realm=\"r\", scope=\"read\"")
        #expect(run.request(fetch)?.authorization?.revealed == "Bearer u")
    }

    @Test("Rule K11: a renewed token is sent with its key, and not released")
    func aRenewedTokenIsSentWithItsKey() throws {
        var run = try afterLogin(token("t"))
        let pattern = SpacePattern(scheme: "https", host: "api.example", port: 443, authenticationMethod: .bearer)
        let params = CredentialGet(pattern: pattern, account: nil, path: "/v1/x")
        let tag = ClientTag(value: 1)
        #expect(run.table.sessionCredential(for: params, of: tag, now: run.now)?.secret == secret("t"))
        var bound = token("u")
        bound.binding = ProofKey.make()
        try run.table.replace(mark("t"), with: bound)
        #expect(try sent(&run) == "DPoP u")
        #expect(run.table.sessionCredential(for: params, of: tag, now: run.now) == nil)
    }
}

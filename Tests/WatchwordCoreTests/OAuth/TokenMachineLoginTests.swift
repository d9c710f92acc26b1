import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Logins of a person: in a browser, and on any device.
@Suite struct TokenMachineLoginTests {
    private let fresh: JSON = ["access_token": "a1", "refresh_token": "r1", "scope": "read"]

    private func loggingIn(server change: JSON = [:], _ rule: (inout OAuthRule) -> Void = { _ in }) throws -> TokenRun {
        var run = try TokenRun(change: rule)
        run.beginLogin(server: change)
        return run
    }

    private func stray(_ run: inout TokenRun, _ method: String, _ target: String) -> [TokenMachine.Command] {
        run.handle(.visited(method: method, target: target, number: 7))
        return run.commands
    }

    // MARK: In a browser

    @Test func aPersonLogsInAndTheTokenIsUsed() throws {
        var run = try loggingIn()
        let login = try #require(run.login)
        #expect(login.issuer == "https://as.example" && login.clientID == "me" && login.scopes == ["read"])
        #expect(login.device == nil && login.url.hasPrefix("http://127.0.0.1:7777/start/"))
        #expect(login.expiresAt == run.sinceEpoch + .seconds(600) && run.wake == run.now + .seconds(600))
        #expect(run.machine.login == login)
        let page = run.page
        run.handle(
            .visited(method: "GET", target: String(login.url.dropFirst("http://127.0.0.1:7777".count)), number: 1))
        guard case .answer(.redirect(let target), number: 1)? = run.commands.first else {
            Issue.record("no redirect: \(run.commands)")
            return
        }
        #expect(target.hasPrefix("https://as.example/auth?"))
        run.redirect(2)
        let request = try #require(run.request)
        #expect(run.commands.count == 1 && request.form["code"] == "the code")
        #expect(page["code_challenge"] == request.form["code_verifier"].map(OAuthText.codeChallenge))
        run.reply(fresh)
        #expect(run.stored?.refresh == secret("r1"))
        #expect(run.machine.login == nil, "a fetch that comes now is not shown a login that is over")
        run.handle(.stored)
        #expect(run.commands.count == 2 && run.commands.first == .answer(.loggedIn, number: 2))
        #expect(run.token?.secret == secret("a1") && run.machine.login == nil)
    }

    @Test("Rule K9: the address that begins a login works once")
    func theAddressThatBeginsALoginWorksOnce() throws {
        var run = try loggingIn()
        let start = String(try #require(run.login).url.dropFirst("http://127.0.0.1:7777".count))
        #expect(stray(&run, "HEAD", start) == [.answer(.notFound, number: 7)])
        guard case .answer(.redirect, number: 7)? = stray(&run, "GET", start).first else {
            Issue.record("no redirect: \(run.commands)")
            return
        }
        for _ in 0..<2 { #expect(stray(&run, "GET", start) == [.answer(.used, number: 7)]) }
        run.redirect(2)
        run.reply(fresh)
        #expect(run.stored?.refresh == secret("r1"))
    }

    @Test func withoutARefreshTokenNothingIsStored() throws {
        var run = try loggingIn()
        run.redirect()
        run.reply(["access_token": "a1"])
        #expect(run.token != nil && run.stored == nil && run.commands.first == .answer(.loggedIn, number: 1))
    }

    @Test("Rule 30: no login begins without a respondent")
    func nobodyToAsk() throws {
        var run = try TokenRun(mayAsk: false)
        run.find(nil)
        #expect(run.commands == [.finish(.nothing)])
    }

    @Test func aFetchThatJoinsMayAllowTheQuestion() throws {
        var run = try TokenRun(mayAsk: false)
        run.machine.mayAsk = true
        run.find(nil)
        #expect(run.commands == [.listen(port: nil)])
    }

    @Test func theConfiguredPortIsUsed() throws {
        var run = try TokenRun { $0.redirectPort = 8123 }
        run.find(nil)
        #expect(run.commands == [.listen(port: 8123)])
        run.handle(.listening(.failure(FetchFailure(.loginFailed, "the port is in use"))))
        #expect(run.failure?.text == "the port is in use")
    }

    @Test("Rule K9: other requests of a browser leave the login as it is")
    func otherRequestsLeaveTheLoginAsItIs() throws {
        var run = try loggingIn()
        let state = run.page["state"] ?? ""
        for (method, target) in [
            ("GET", "/favicon.ico"), ("POST", "/callback?state=\(state)&code=c"),
            ("HEAD", "/callback?state=\(state)&code=c"),
            ("GET", "/callback?state=x&code=c"), ("GET", "/callback?state=x&error=access_denied"),
        ] {
            #expect(stray(&run, method, target) == [.answer(.notFound, number: 7)])
        }
        run.redirect()
        #expect(run.request != nil)
    }

    @Test func aSecondRedirectRedeemsNoSecondCode() throws {
        var run = try loggingIn()
        let state = run.page["state"] ?? ""
        run.redirect(1)
        #expect(stray(&run, "GET", "/callback?state=\(state)&code=d") == [.answer(.notFound, number: 7)])
        run.reply(fresh)
        #expect(stray(&run, "GET", "/callback?state=\(state)&code=d") == [.answer(.notFound, number: 7)])
        run.handle(.stored)
        #expect(run.token != nil)
        #expect(stray(&run, "GET", "/callback?state=\(state)&code=d") == [.answer(.notFound, number: 7)])
    }

    @Test(arguments: [
        ("access_denied", ErrorKind.challengeCancelled), ("invalid_scope", .loginFailed),
        ("server_error", .loginFailed),
    ])
    func aRefusalAtTheLoginPageEndsTheLogin(code: String, kind: ErrorKind) throws {
        var run = try loggingIn()
        run.redirect(1, ["code": nil, "error": code])
        #expect(run.commands.count == 2 && run.commands.first == .answer(.failed, number: 1))
        #expect(run.failure?.kind == kind)
    }

    @Test("Rule K8: the answer of another server is dropped, with its code")
    func theAnswerOfAnotherServerIsDropped() throws {
        var run = try loggingIn()
        run.redirect(1, ["iss": "https://evil.example"])
        #expect(run.request == nil && run.commands.first == .answer(.failed, number: 1))
        #expect(run.failure?.text.contains("another server") == true)
    }

    @Test(
        arguments: [(400, "invalid_grant"), (403, "invalid_code"), (400, nil), (500, nil), (302, nil)]
            as [(Int, String?)])
    func aCodeThatIsRefusedEndsTheLogin(status: Int, code: String?) throws {
        var run = try loggingIn()
        run.redirect()
        run.reply(["error": code.map { .string($0) }], status: status)
        #expect(run.commands.count == 2 && run.commands.first == .answer(.failed, number: 1))
        #expect(run.failure?.kind == .loginFailed && run.machine.login == nil)
    }

    @Test func theServerIsOutOfReachForTheCode() throws {
        var run = try loggingIn()
        run.redirect()
        run.failNetwork()
        #expect(run.commands.first == .answer(.failed, number: 1) && run.failure?.kind == .cannotConnect)
    }

    @Test("Rule 31: a login ends after ten minutes")
    func aLoginEndsAfterTenMinutes() throws {
        var run = try loggingIn()
        run.handle(.timePassed)
        #expect(run.failure?.kind == .challengeTimedOut && run.failure?.text.contains("https://as.example") == true)
    }

    @Test func whileTheCodeIsRedeemedTheTimeLimitIsOver() throws {
        var run = try loggingIn()
        run.redirect()
        run.handle(.timePassed)
        #expect(run.commands.isEmpty)
    }

    @Test(arguments: [true, false])
    func withOpenIDTheIDTokenHasToBeForThisLogin(isRight: Bool) throws {
        var run = try loggingIn { $0.scopes = ["openid"] }
        let nonce = run.page["nonce"] ?? ""
        let claims: JSON = [
            "iss": "https://as.example", "aud": "me", "exp": 2_000_000_060, "nonce": .string(isRight ? nonce : "other"),
        ]
        run.redirect()
        run.reply(["access_token": "a1", "id_token": .string("e30.\(OAuthText.base64URL(claims.serialized())).c2ln")])
        #expect((run.token != nil) == isRight && (run.failure != nil) == !isRight)
    }

    @Test func withOpenIDAnIDTokenIsRequired() throws {
        var run = try loggingIn { $0.scopes = ["openid"] }
        run.redirect()
        run.reply(fresh)
        #expect(run.failure?.text.contains("ID token") == true && run.commands.first == .answer(.failed, number: 1))
    }

    // MARK: Registration

    private func registering(_ allowed: Bool = true, server change: JSON = [:]) throws -> TokenRun {
        try loggingIn(server: change) { ($0.clientID, $0.registersClient) = (nil, allowed) }
    }

    @Test("RFC 7591: a client is registered for the address of the listener")
    func aClientIsRegistered() throws {
        var run = try registering()
        let request = try #require(run.request)
        #expect(request.url.text == "https://as.example/register" && !request.isDocument)
        let metadata = try #require(OAuthDocument.parse(request.body ?? []))
        #expect(metadata.strings("redirect_uris") == ["http://127.0.0.1:7777/callback"])
        #expect(metadata["token_endpoint_auth_method"]?.string == "none")
        run.reply(["client_id": "auto", "client_secret": ""], status: 201)
        #expect(run.login?.clientID == "auto" && run.page["client_id"] == "auto")
        run.redirect()
        #expect(run.request?.form["client_id"] == "auto" && run.request?.authorization == nil)
        run.reply(fresh)
        #expect(run.stored?.registered == OAuthClient(id: "auto", secret: nil) && run.stored?.key.clientID == "")
    }

    @Test func withoutPermissionOrEndpointNothingIsRegistered() throws {
        for run in [try registering(false), try registering(server: ["registration_endpoint": .null])] {
            #expect(run.request == nil && run.failure?.kind == .loginFailed)
        }
    }

    @Test(
        arguments: [
            (400, ["error": "invalid_redirect_uri"]), (403, ["client_id": "x"]), (201, [:]), (201, ["client_id": ""]),
        ] as [(Int, JSON)])
    func aBrokenRegistrationBeginsNoLogin(status: Int, json: JSON) throws {
        var run = try registering()
        run.reply(json, status: status)
        #expect(run.failure?.kind == .loginFailed && run.login == nil)
    }

    @Test func aClientOfAnotherPortIsRegisteredAgain() throws {
        var run = try TokenRun(needsLogin: true) { ($0.clientID, $0.registersClient) = (nil, true) }
        run.find(grant { $0.registered = OAuthClient(id: "old", secret: nil) })
        run.handle(.listening(.success("127.0.0.1:7778")))
        #expect(run.request?.url.text == "https://as.example/register")
    }
}

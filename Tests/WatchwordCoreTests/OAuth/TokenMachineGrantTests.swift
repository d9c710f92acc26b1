import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Tokens from a stored grant: RFC 6749 section 6, RFC 6750 section 3.1.
@Suite struct TokenMachineGrantTests {
    private let fresh: JSON = ["access_token": "a2", "refresh_token": "r2", "expires_in": 60]

    /// Returns a run that renews `grant`.
    private func renewing(_ found: OAuthGrant = grant(), mayAsk: Bool = true) throws -> TokenRun {
        var run = try TokenRun(mayAsk: mayAsk)
        run.find(found)
        return run
    }

    // MARK: Renewal

    @Test func aGrantIsRenewedWithoutAPerson() throws {
        var run = try TokenRun(mayAsk: false) { $0.resourceIndicator = "urn:api" }
        run.find(grant())
        let request = try #require(run.request)
        #expect(request.url.text == "https://as.example/token")
        // Without `scope`: the granted scopes stay.
        #expect(
            request.form == [
                "grant_type": "refresh_token", "refresh_token": "r1", "client_id": "me", "resource": "urn:api",
            ])
        run.reply(fresh)
        #expect(run.outcome == nil)
        run.handle(.stored)
        #expect(run.token?.secret == secret("a2") && run.token?.form == .token)
    }

    @Test("Rule K5: the new refresh token is stored before the access token is used")
    func theNewRefreshTokenIsStoredFirst() throws {
        var run = try renewing()
        run.reply(fresh)
        #expect(run.commands.count == 1)
        #expect(run.stored?.refresh == secret("r2") && run.stored?.access == secret("a2"))
        #expect(run.stored?.scopes == ["read"])
        run.handle(.stored)
        #expect(run.commands.count == 1 && run.token != nil)
    }

    @Test func aServerWithoutRotationKeepsTheRefreshToken() throws {
        var run = try renewing()
        run.reply(["access_token": "a2"])
        #expect(run.stored?.refresh == secret("r1"))
    }

    @Test func theGrantedScopesAreStoredSorted() throws {
        var run = try renewing(grant("r1", ["read", "x"]))
        run.reply(fresh.adding(["scope": "write read"]))
        #expect(run.stored?.scopes == ["read", "write"])
    }

    @Test func aTokenExpiresSlightlyEarly() throws {
        for (lifetime, usable) in [(3600, 3590), (60, 54)] {
            var run = try renewing()
            run.reply(fresh.adding(["expires_in": .integer(lifetime)]))
            run.handle(.stored)
            #expect(run.token?.expiresAt == run.sinceEpoch + .seconds(usable))
        }
        var run = try renewing()
        run.reply(["access_token": "a2"])
        run.handle(.stored)
        #expect(run.token?.expiresAt == nil)
    }

    @Test func aTokenIsForThePathOfItsResource() throws {
        var run = try renewing()
        run.reply(fresh)
        run.handle(.stored)
        #expect(run.token?.path == "/v1" && run.token?.persistence == .forSession)
        #expect(run.token?.scope == BearerScope("read") && run.token?.binding == nil)
    }

    @Test func aRegisteredClientIsUsedForItsGrant() throws {
        var run = try TokenRun { ($0.clientID, $0.registersClient) = (nil, true) }
        run.find(grant { $0.registered = OAuthClient(id: "auto", secret: secret("s")) })
        #expect(run.request?.authorization?.revealed == basic("auto", "s"))
    }

    // MARK: Refusals

    @Test("Rule K5: after invalid_grant the keyring is read again before the grant is forgotten")
    func afterInvalidGrantTheKeyringIsReadAgain() throws {
        var run = try renewing()
        run.reply(["error": "invalid_grant"], status: 400)
        #expect(run.commands == [.lookUp(run.machine.key)])
        run.handle(.found(grant("r9")))
        #expect(run.request?.form["refresh_token"] == "r9")
        run.reply(fresh)
        run.handle(.stored)
        #expect(run.token != nil)
        #expect(!run.all.contains(.forget(run.machine.key)))
    }

    @Test func aDeadGrantIsForgottenAndAPersonAsked() throws {
        var run = try renewing()
        run.reply(["error": "invalid_grant"], status: 400)
        run.handle(.found(grant("r1")))
        #expect(run.commands == [.forget(run.machine.key), .listen(port: nil)])
    }

    @Test func aDeadGrantIsForgottenEvenIfNobodyCanBeAsked() throws {
        var run = try renewing(mayAsk: false)
        run.reply(["error": "invalid_grant"], status: 400)
        run.handle(.found(grant("r1")))
        #expect(run.commands == [.forget(run.machine.key), .finish(.nothing)])
    }

    @Test func aGrantThatAnotherProgramHasForgottenIsNotForgottenAgain() throws {
        var run = try renewing()
        run.reply(["error": "invalid_grant"], status: 400)
        run.handle(.found(nil))
        #expect(run.commands == [.listen(port: nil)])
    }

    @Test("Two dead grants end in one question")
    func twoDeadGrantsEndInOneQuestion() throws {
        var run = try renewing()
        for next in ["r9", "r9"] {
            run.reply(["error": "invalid_grant"], status: 400)
            run.handle(.found(grant(next)))
        }
        #expect(run.commands == [.forget(run.machine.key), .listen(port: nil)])
    }

    @Test func withoutAReasonTheGrantIsKeptUntilTheNextLogin() throws {
        for mayAsk in [true, false] {
            var run = try renewing(mayAsk: mayAsk)
            run.reply(nil, status: 400)
            #expect(run.commands == (mayAsk ? [.listen(port: nil)] : [.finish(.nothing)]))
            #expect(!run.all.contains(.forget(run.machine.key)))
        }
    }

    @Test(
        "An error of the configuration leads to no question",
        arguments: ["invalid_client", "unauthorized_client", "invalid_scope", "invalid_target", "invalid_request"])
    func anErrorOfTheConfigurationIsNoQuestion(code: String) throws {
        var run = try renewing()
        run.reply(["error": .string(code)], status: 400)
        #expect(run.failure?.kind == .loginFailed && run.failure?.text.contains(code) == true)
        #expect(run.commands.count == 1)
    }

    @Test(
        "Rule 30: a person is asked after an error of the server's own",
        arguments: ["bad_refresh_token", "", "login_required"])
    func anUnknownErrorLeadsToAQuestion(code: String) throws {
        var run = try renewing()
        run.reply(["error": .string(code)], status: 400)
        #expect(run.commands == [.listen(port: nil)])
    }

    @Test func aClientThatTheServerHasForgottenIsRegisteredAgain() throws {
        var run = try renewing(grant { $0.registered = OAuthClient(id: "auto", secret: nil) })
        run.reply(["error": "invalid_client"], status: 401)
        #expect(run.commands == [.lookUp(grant().key)])
    }

    @Test(arguments: [429, 500, 503])
    func aServerOutOfOrderKeepsTheGrant(status: Int) throws {
        var run = try renewing()
        run.reply(["error": "invalid_grant"], status: status)
        #expect(run.commands.count == 1 && run.failure?.text.contains("status \(status)") == true)
    }

    @Test func aFailureOfTheNetworkKeepsTheGrant() throws {
        var run = try renewing()
        run.failNetwork()
        #expect(run.commands.count == 1 && run.failure?.kind == .cannotConnect)
    }

    @Test func aTokenThatAServerHasRefusedNeedsALogin() throws {
        var run = try TokenRun(needsLogin: true)
        run.find(grant())
        #expect(run.commands == [.listen(port: nil)])
    }

    // MARK: Scopes

    private func insufficient(_ wanted: [String], _ found: OAuthGrant?, configured: [String] = ["read"]) throws
        -> TokenRun
    {
        var run = try TokenRun {
            $0.scopes = configured
        } challenge: {
            ($0.isInsufficient, $0.scopes) = (true, wanted)
        }
        run.find(found)
        return run
    }

    @Test("Rule 30: a missing scope is asked for together with the others")
    func aMissingScopeIsAskedForTogetherWithTheOthers() throws {
        var run = try insufficient(["write"], grant("r1", ["old", "read"]))
        #expect(run.commands == [.listen(port: nil)])
        run.handle(.listening(.success("127.0.0.1:7777")))
        #expect(run.login?.scopes == ["old", "read", "write"] && run.page["scope"] == "old read write")
    }

    @Test func aGrantThatHasTheScopeIsRenewed() throws {
        #expect(
            try insufficient(["read"], grant("r1", ["read", "write"])).request?.form["grant_type"] == "refresh_token")
    }

    @Test("Rule 30: a scope that was not granted is not requested again")
    func whatWasNotGrantedIsNotRequestedAgain() throws {
        let run = try insufficient(["write"], grant { $0.denied = ["write"] })
        #expect(run.failure?.text.contains("did not grant write") == true && run.commands.count == 1)
        let other = try insufficient(["admin"], grant { $0.denied = ["write"] })
        #expect(other.commands == [.listen(port: nil)])
    }

    @Test func aLoginThatGrantsLessIsRememberedAndFails() throws {
        var run = try insufficient(["write"], grant())
        run.handle(.listening(.success("127.0.0.1:7777")))
        run.redirect()
        run.reply(fresh.adding(["scope": "read"]))
        #expect(run.stored?.denied == ["write"] && run.stored?.scopes == ["read"])
        run.handle(.stored)
        #expect(run.failure?.text.contains("did not grant write") == true)
    }

    @Test func aTokenWithoutTheScopeOfTheChallengeIsStillTried() throws {
        var run = try TokenRun {
            $0.scopes = []
        } challenge: {
            $0.scopes = ["read", "write"]
        }
        run.find(grant())
        run.reply(fresh)
        run.handle(.stored)
        #expect(run.token != nil && run.token?.scope == nil)
    }

    @Test("Rule 30: a renewal requests no scopes, so that it denies none")
    func aRenewalDeniesNoScope() throws {
        var run = try TokenRun {
            $0.scopes = []
        } challenge: {
            $0.scopes = ["read", "write"]
        }
        run.find(grant { $0.denied = ["admin"] })
        run.reply(fresh)
        #expect(run.stored?.denied == ["admin"])
    }

    @Test func whatIsGrantedLaterIsNotDeniedAnyMore() throws {
        var run = try renewing(grant { $0.denied = ["admin", "write"] })
        run.reply(fresh.adding(["scope": "read write"]))
        #expect(run.stored?.denied == ["admin"])
    }
}

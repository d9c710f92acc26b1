import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Logins on any device (RFC 8628), and tokens without a person.
@Suite struct TokenMachineDeviceTests {
    private let code: JSON = [
        "device_code": "d", "user_code": "6JCH-NM15", "verification_uri": "https://as.example/device",
        "verification_uri_complete": "https://as.example/device?c", "expires_in": 60,
    ]

    private func showingCode() throws -> TokenRun {
        var run = try TokenRun { ($0.flow, $0.resourceIndicator) = (.device, "urn:api") }
        run.find(nil)
        run.reply(code)
        return run
    }

    /// Lets the interval pass, and answers the request for the token.
    private func poll(_ run: inout TokenRun, _ error: JSON?, status: Int = 400) {
        run.now = run.wake ?? run.now
        run.handle(.timePassed)
        run.reply(["error": error], status: status)
    }

    @Test func aCodeIsShown() throws {
        var run = try TokenRun { ($0.flow, $0.resourceIndicator) = (.device, "urn:api") }
        run.find(nil)
        #expect(run.request?.url.text == "https://as.example/device")
        #expect(run.request?.form == ["scope": "read", "resource": "urn:api", "client_id": "me"])
        run.reply(code)
        let login = try #require(run.login)
        #expect(login.device?.userCode == "6JCH-NM15" && login.device?.completeURL == "https://as.example/device?c")
        #expect(login.url == "https://as.example/device" && login.expiresAt == run.sinceEpoch + .seconds(60))
        #expect(run.wake == run.now + .seconds(5))
    }

    @Test(arguments: [(OAuthRule.Flow?.none, true), (.browser, false)])
    func withoutALoginPageACodeIsShown(flow: OAuthRule.Flow?, isDevice: Bool) throws {
        var run = try TokenRun { $0.flow = flow }
        run.find(nil, server: ["authorization_endpoint": .null])
        #expect((run.request?.url.text == "https://as.example/device") == isDevice)
    }

    @Test func withoutADeviceEndpointThereIsNoCode() throws {
        var run = try TokenRun { $0.flow = .device }
        run.find(nil, server: ["device_authorization_endpoint": .null])
        #expect(run.failure?.kind == .loginFailed)
    }

    @Test func theServerIsAskedUntilThePersonHasLoggedIn() throws {
        var run = try showingCode()
        for _ in 0..<3 {
            let before = run.now
            poll(&run, "authorization_pending")
            #expect(run.now == before + .seconds(5) && run.outcome == nil)
        }
        run.now = try #require(run.wake)
        run.handle(.timePassed)
        #expect(run.request?.form["device_code"] == "d")
        run.reply(["access_token": "a1", "refresh_token": "r1"])
        run.handle(.stored)
        #expect(run.token?.secret == secret("a1") && run.commands.count == 1)
    }

    @Test("RFC 8628 section 3.5: slow_down adds five seconds to each later wait")
    func slowDownAddsFiveSecondsForGood() throws {
        var run = try showingCode()
        poll(&run, "slow_down")
        #expect(run.wake == run.now + .seconds(10))
        poll(&run, "authorization_pending")
        #expect(run.wake == run.now + .seconds(10))
    }

    @Test func aServerOutOfReachIsAskedLessOften() throws {
        var run = try showingCode()
        run.now += .seconds(5)
        run.handle(.timePassed)
        run.failNetwork()
        #expect(run.wake == run.now + .seconds(10) && run.outcome == nil)
        poll(&run, nil, status: 503)
        #expect(run.wake == run.now + .seconds(20))
    }

    @Test func theCodeExpires() throws {
        var run = try showingCode()
        let end = run.now + .seconds(60)
        while let wake = run.wake, wake < end { poll(&run, "slow_down") }
        #expect(run.wake == end, "not later than the code")
        run.now = end
        run.handle(.timePassed)
        #expect(run.request == nil && run.failure?.kind == .challengeTimedOut)
    }

    @Test(arguments: [
        ("access_denied", ErrorKind.challengeCancelled), ("expired_token", .challengeTimedOut),
        ("invalid_grant", .loginFailed), ("", .loginFailed),
    ])
    func aRefusalEndsTheLogin(code: String, kind: ErrorKind) throws {
        var run = try showingCode()
        poll(&run, .string(code))
        #expect(run.failure?.kind == kind && run.wake == nil)
    }

    @Test func whileARequestIsOnTheWayNothingIsAsked() throws {
        var run = try showingCode()
        run.handle(.timePassed)
        run.handle(.timePassed)
        #expect(run.commands.isEmpty)
    }

    @Test func noCodeForTheDevice() throws {
        var run = try TokenRun { $0.flow = .device }
        run.find(nil)
        run.reply(["error": "invalid_client"], status: 401)
        #expect(run.failure?.text.contains("invalid_client") == true && run.login == nil)
    }

    // MARK: Client credentials

    @Test("RFC 6749 section 4.4: client credentials need no person and no grant")
    func clientCredentialsNeedNoPerson() throws {
        var run = try TokenRun(mayAsk: false) {
            ($0.flow, $0.clientSecret, $0.resourceIndicator) = (.clientCredentials, secret("s"), "urn:api")
        }
        run.findServer()
        #expect(run.request?.authorization?.revealed == basic("me", "s"))
        #expect(run.request?.form == ["grant_type": "client_credentials", "scope": "read", "resource": "urn:api"])
        run.reply(["access_token": "a1", "expires_in": 60])
        #expect(run.token?.secret == secret("a1") && run.all.count == 3)
    }

    @Test("RFC 6749 section 4.4.3: a refresh token for client credentials is of no use, and not stored")
    func aRefreshTokenForClientCredentialsIsNotStored() throws {
        var run = try TokenRun { ($0.flow, $0.clientSecret) = (.clientCredentials, secret("s")) }
        run.findServer()
        run.reply(["access_token": "a1", "refresh_token": "r1"])
        #expect(run.stored == nil && run.token != nil)
    }

    @Test(arguments: [(401, "invalid_client"), (403, nil), (500, nil)] as [(Int, String?)])
    func aWrongSecretIsAFailure(status: Int, code: String?) throws {
        var run = try TokenRun { ($0.flow, $0.clientSecret) = (.clientCredentials, secret("s")) }
        run.findServer()
        run.reply(["error": code.map { .string($0) }], status: status)
        #expect(run.failure?.kind == .loginFailed && run.commands.count == 1)
    }
}

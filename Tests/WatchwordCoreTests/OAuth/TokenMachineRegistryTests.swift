import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Token services of container registries, and unexpected events.
@Suite struct TokenMachineRegistryTests {
    private func registry(
        realm: String? = "https://auth.example/token", needsLogin: Bool = false, isInsufficient: Bool = false
    ) throws -> TokenRun {
        try TokenRun(url: "https://registry.example/v2/foo/manifests/x", needsLogin: needsLogin, mayAsk: false) {
            rule in
            rule = OAuthRule(resource: "https://registry.example")
            (rule.flow, rule.issuer) = (.registry, "https://auth.example")
        } challenge: {
            ($0.realm, $0.service, $0.isInsufficient) = (realm, "reg istry", isInsufficient)
            $0.scopes = ["repository:a:pull,push", "repository:b:pull"]
        }
    }

    @Test func theTokenServiceIsAskedWithOneParameterForEachScope() throws {
        let request = try #require(try registry().request)
        #expect(
            request.url.text
                == "https://auth.example/token?service=reg%20istry&scope=repository%3Aa%3Apull%2Cpush"
                + "&scope=repository%3Ab%3Apull"
        )
        #expect(request.body == nil && request.usesCredentials && !request.needsLogin && !request.isDocument)
        #expect(try registry(needsLogin: true).request?.needsLogin == true)
    }

    @Test func theServiceAndItsURLAreNamedByTheirBytes() throws {
        let parameters = BearerParameters(
            ["service": received(latin1: "\u{E9}")], realm: ExactText(received(latin1: "https://auth.example/\u{FC}")))
        let run = try TokenRun(url: "https://registry.example/v2/", mayAsk: false) { rule in
            rule = OAuthRule(resource: "https://registry.example")
            (rule.flow, rule.issuer) = (.registry, "https://auth.example")
        } challenge: {
            $0 = parameters
        }
        #expect(run.request?.url.text == "https://auth.example/%FC?service=%E9")
    }

    @Test func aQueryOfTheTokenServiceIsKept() throws {
        let request = try registry(realm: "https://auth.example/token?account=ann").request
        #expect(request?.url.text.hasPrefix("https://auth.example/token?account=ann&service=reg%20istry&") == true)
    }

    @Test(
        "Rule K12: the password goes only to the token service that is configured",
        arguments: [
            "https://evil.example/token", "http://auth.example/token", "https://auth.example:8443/token", "/token",
            "https://auth.example.evil.example/token", "",
        ])
    func anotherTokenServiceIsRefused(realm: String) throws {
        let run = try registry(realm: realm)
        #expect(run.request == nil && run.failure?.kind == .loginFailed)
    }

    @Test func withoutAChallengeThereIsNoService() throws {
        #expect(try registry(realm: nil).commands == [.finish(.nothing)])
    }

    @Test func theTokenIsUsedAndNothingStored() throws {
        var run = try registry()
        run.reply(["token": "a1", "refresh_token": "r1", "expires_in": 300])
        #expect(run.token?.secret == secret("a1") && run.commands.count == 1)
        #expect(run.token?.scope == BearerScope("repository:a:pull,push repository:b:pull") && run.token?.path == nil)
    }

    @Test func aTokenThatGrantsLessIsTried() throws {
        var run = try registry(isInsufficient: true)
        run.reply(["token": "a1", "scope": "repository:a:pull"])
        #expect(run.token != nil && run.token?.scope == nil)
    }

    private static let basic = [HeaderField("WWW-Authenticate", "Basic realm=\"auth\"")]

    @Test("Rule 30: a service that got no password leads to the response of the registry", arguments: [401, 403])
    func withoutPasswordThereIsNoToken(status: Int) throws {
        var run = try registry()
        run.handle(.replied(.success(reply(["errors": []], status: 401, Self.basic))))
        #expect(run.commands == [.finish(.nothing)])
        // Nobody had a login to offer, either.
        var offered = try registry()
        offered.reply(["errors": []], status: status)
        offered.handle(.replied(.success(reply(nil, status: 401, Self.basic))))
        #expect(offered.commands == [.finish(.nothing)])
    }

    @Test("Rule 30: a service that turns everybody away without a challenge gets a login", arguments: [401, 403])
    func aServiceWithoutAChallengeGetsALogin(status: Int) throws {
        for fields in [[], [HeaderField("WWW-Authenticate", "Bearer realm=\"x\"")]] {
            var run = try registry()
            let first = try #require(run.request)
            run.handle(.replied(.success(reply(["errors": []], status: status, fields))))
            let second = try #require(run.request)
            #expect(!first.needsLogin && second.needsLogin && second.url == first.url && second.mayAsk == first.mayAsk)
            var refused = run
            run.reply(["token": "a1"])
            #expect(run.token?.secret == secret("a1"))
            refused.handle(.replied(.success(reply(["errors": []], status: status, fields))))
            #expect(refused.failure?.kind == .loginFailed && refused.failure?.text.contains("\(status)") == true)
        }
    }

    @Test(arguments: [400, 500, 302])
    func aRefusalIsAFailure(status: Int) throws {
        var run = try registry()
        run.reply(["errors": []], status: status)
        #expect(run.failure?.kind == .loginFailed)
    }

    // MARK: Purposes

    @Test func registriesHaveATokenForEachScope() throws {
        func purpose(_ flow: OAuthRule.Flow?, _ scopes: [String], realm: String = "r") throws -> TokenQuery.Purpose {
            try TokenRun {
                $0.flow = flow
            } challenge: {
                ($0.scopes, $0.realm) = (scopes, realm)
            }.machine.query.purpose
        }
        #expect(try purpose(.registry, ["a"]) != purpose(.registry, ["b"]))
        #expect(try purpose(.registry, ["a"], realm: "x") != purpose(.registry, ["a"], realm: "y"))
        // Elsewhere the configuration decides.
        #expect(try purpose(nil, ["a"], realm: "x") == purpose(nil, ["b"], realm: "y"))
    }

    @Test("Rule 30: a challenge for a scope, and one because of the scope, are two purposes")
    func aRefusedScopeIsAnotherPurpose() throws {
        func query(_ isInsufficient: Bool, needsLogin: Bool = false) throws -> TokenQuery {
            try TokenRun(needsLogin: needsLogin) {
                $0.scopes = []
            } challenge: {
                ($0.scopes, $0.isInsufficient) = (["write"], isInsufficient)
            }.machine.query
        }
        #expect(try query(true).purpose != query(false).purpose)
        #expect(try query(false).purpose != query(false, needsLogin: true).purpose)
        #expect(try query(true).withoutPerson?.purpose == query(false).purpose)
        #expect(try query(true).withoutPerson?.mayAsk == false)
    }

    @Test func tokensOfRegistriesAreNotRenewedInAdvance() throws {
        #expect(try registry().machine.query.withoutPerson == nil)
    }

    // MARK: Unexpected events

    /// Runs in every state, each with the events that belong to it.
    private func states() throws -> [(name: String, run: TokenRun, expected: Set<String>)] {
        var finding = try TokenRun { $0.issuer = nil }
        let findingIssuer = finding
        finding.reply(["resource": "https://api.example/v1", "authorization_servers": ["https://as.example"]])
        var lookingUp = finding
        lookingUp.findServer()
        var (refreshing, listening) = (lookingUp, lookingUp)
        refreshing.handle(.found(grant()))
        listening.handle(.found(nil))
        var waiting = listening
        waiting.handle(.listening(.success("127.0.0.1:7777")))
        var exchanging = waiting
        exchanging.redirect()
        var storing = refreshing
        storing.reply(["access_token": "a"])
        var requestingCode = try TokenRun { $0.flow = .device }
        requestingCode.find(nil)
        var device = requestingCode
        device.reply(["device_code": "d", "user_code": "u", "verification_uri": "https://as.example/device"])
        var polling = device
        polling.handle(.timePassed)
        return [
            ("findingIssuer", findingIssuer, ["replied"]), ("findingServer", finding, ["replied"]),
            ("lookingUp", lookingUp, ["found"]), ("refreshing", refreshing, ["replied"]),
            ("requesting", try registry(), ["replied"]), ("listening", listening, ["listening"]),
            ("waitingForBrowser", waiting, []), ("exchanging", exchanging, ["replied"]),
            ("requestingCode", requestingCode, ["replied"]), ("waitingForDevice", device, []),
            ("polling", polling, ["replied"]), ("storing", storing, ["stored"]),
        ]
    }

    @Test("An event that belongs to no state ends the search, once")
    func eventsInTheWrongStateEndTheSearch() throws {
        let events: [(String, TokenMachine.Event)] = [
            ("started", .started), ("found", .found(nil)), ("stored", .stored),
            ("listening", .listening(.success("127.0.0.1:1"))), ("replied", .replied(.success(reply([:])))),
        ]
        for (name, run, expected) in try states() {
            for (event, value) in events where !expected.contains(event) {
                var run = run
                run.handle(value)
                #expect(run.failure == .unexpectedEvent, "\(event) in \(name)")
                run.handle(value)
                #expect(run.commands.isEmpty, "after the end")
            }
        }
    }

    @Test("A stray visit and an early wake-up change nothing in any state")
    func strayVisitsAndWakeUpsChangeNothing() throws {
        for (name, run, _) in try states() {
            var run = run
            run.handle(.visited(method: "GET", target: "/", number: 3))
            #expect(run.commands == [.answer(.notFound, number: 3)], "\(name)")
            guard !name.hasPrefix("waiting") else { continue }
            run.handle(.timePassed)
            #expect(run.commands.isEmpty && run.outcome == nil, "\(name)")
        }
    }

    @Test func theBrowserIsToldOfAnUnexpectedEnd() throws {
        var run = try #require(try states().first { $0.name == "exchanging" }).run
        run.handle(.stored)
        #expect(run.commands.first == .answer(.failed, number: 1) && run.commands.count == 2)
    }

    @Test("Rule K9: the pages repeat nothing of a request")
    func thePagesRepeatNothing() {
        #expect([.redirect(to: "x"), .loggedIn, .failed, .notFound].map(\BrowserPage.status) == [303, 200, 400, 404])
        #expect(BrowserPage.redirect(to: "https://as.example/auth").text.isEmpty)
    }
}

import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The request's own credential before a challenge: `Preemption.always`.
@Suite struct UnaskedCredentialTests {
    private func run(
        _ url: String, _ credential: LoginCredential = login("bob", "own"),
        change: (inout FetchRunParams) -> Void = { _ in }
    ) throws -> MachineRun {
        var run = try MachineRun(url) {
            $0.credential = credential
            $0.preemption = .always
            change(&$0)
        }
        run.start()
        return run
    }

    @Test(
        "Rule 16: with always the own password is sent at once over https or to this machine",
        arguments: ["https://h/", "http://127.0.0.1/", "http://[::1]/", "http://localhost/"])
    func itIsSentWithTheFirstRequestOnAPrivateConnection(url: String) throws {
        var run = try run(url)
        run.respond(200)
        #expect(run.authorizations == [basic("bob", "own")])
        #expect(run.result?.authentication == .init(method: .httpBasic, source: .explicit, user: "bob"))
        #expect(run.result?.exchanges == 1 && run.session.isEmpty)
    }

    @Test(
        "Rule 16: nothing is sent unasked to a path in which a server may find another one",
        arguments: ["/other/../a/x", "/a/./x", "/a/%2e%2e/a/x"])
    func nothingIsSentUnaskedToAnAmbiguousPath(target: String) throws {
        let change = { (params: inout FetchRunParams) in
            params.credential = login("bob", "own")
            params.preemption = .always
        }
        var own = try MachineRun("https://h" + target, keepsTarget: true, change: change)
        own.start()
        #expect(own.authorizations == [nil])
        var first = try MachineRun("https://h/a/page")
        first.start()
        first.challengeBasic()
        first.answer(user: "bob", "pw")
        first.respond(200)
        var plain = try MachineRun("https://h/a/x", session: first.session)
        plain.start()
        #expect(plain.authorizations == [basic("bob", "pw")])
        var run = try MachineRun("https://h" + target, session: first.session, keepsTarget: true)
        run.start()
        run.challengeBasic()
        #expect(run.authorizations == [nil, basic("bob", "pw")], "only after a challenge")
    }

    @Test("Rule 16: a login that was accepted at an ambiguous path is sent unasked nowhere")
    func anAmbiguousPathIsNotRemembered() throws {
        var first = try MachineRun("https://h/other/../a/x", keepsTarget: true)
        first.start()
        first.challengeBasic()
        first.answer(user: "bob", "pw")
        first.respond(200)
        for path in ["/a/x", "/other/x", "/"] {
            var run = try MachineRun("https://h" + path, session: first.session)
            run.start()
            #expect(run.authorizations == [nil])
        }
    }

    @Test("Rule 16: with always nothing is sent at once through a proxy that can read it")
    func throughAProxyLocalhostIsNotThisMachine() throws {
        let run = try run("http://localhost/") { $0.proxy = .named(NamedProxy(url: "http://q:3128")) }
        #expect(run.authorizations == [nil])
    }

    @Test func aTokenThatIsTooNarrowIsNotRefused() throws {
        let token = LoginCredential(form: .token, secret: secret("T"))
        var run = try run("https://h/", token)
        run.respond(401, ("WWW-Authenticate", "Bearer realm=\"api\", error=\"insufficient_scope\", scope=\"w\""))
        #expect(run.authorizations == ["Bearer T"] && run.challenges[0].previousFailureCount == 0)
    }

    @Test func itIsSentPreemptivelyWhereBasicWasAccepted() throws {
        var first = try MachineRun("https://h/")
        first.start()
        first.challengeBasic()
        first.answer(user: "bob", "own")
        first.respond(200)
        var run = try MachineRun("https://h/", session: first.session) {
            $0.credential = login("eve", "own")
            $0.preemption = .always
        }
        run.start()
        #expect(run.authorizations == [basic("eve", "own")])
    }

    /// A page that requires no login has not checked the password.
    @Test func aPreemptiveCredentialProvesNothingToChallengedFetches() throws {
        var run = TableRun()
        let unasked = try run.fetch("https://h/public") {
            $0.credential = login("bob", "wrong")
            $0.preemption = .always
        }
        // Without storage the fetches share no queue, but the number of attempts with one account is still limited.
        let asked = try (1...3).map { number in
            try run.fetch("https://h/private/\(number)", client: number) {
                $0.credential = login("bob", "wrong")
                $0.useStorage = false
                $0.interaction = .none
            }
        }
        for id in asked { run.challenge(id) }
        run.respond(unasked, 200)
        #expect(run.sent == [basic("bob", "wrong"), basic("bob", "wrong")])
        for _ in 0..<10 { for id in asked where run.request(id) != nil { run.challenge(id) } }
        #expect(run.sent.count == 2 && asked.allSatisfy { run.results[$0]?.response.status == 401 })
    }

    @Test("Rule 16: with always the own password waits for the challenge over plain http")
    func overPlainHTTPItWaitsForTheChallenge() throws {
        var run = try run("http://h/")
        #expect(run.authorizations == [nil])
        run.challengeBasic()
        #expect(run.authorizations == [nil, basic("bob", "own")])
    }

    @Test("Rule 16: with always the own token is sent at once")
    func aTokenIsSentAsBearer() throws {
        let token = LoginCredential(form: .token, secret: secret("T"))
        #expect(try run("https://h/", token).authorizations == ["Bearer T"])
    }

    @Test func aRefusedCredentialIsNotSentAgain() throws {
        var run = try run("https://h/")
        run.challengeBasic()
        #expect(run.authorizations == [basic("bob", "own")] && run.challenges[0].previousFailureCount == 1)
    }

    @Test func aCredentialRefusedInSeveralRealmsIsSentInNone() throws {
        let realms = ("WWW-Authenticate", "Basic realm=\"a\", Basic realm=\"b\"")
        var run = try run("https://h/")
        run.respond(401, realms)
        #expect(run.challenges[0].previousFailureCount == 1)
        run.answer(.reject)
        #expect(run.challenges.count == 2 && run.authorizations == [basic("bob", "own")])

        var many = TableRun()
        let ids = try (0..<3).map { number in
            try many.fetch("https://h/\(number)", client: number) {
                $0.credential = login("bob", "wrong")
                $0.preemption = .always
                $0.interaction = .none
            }
        }
        for _ in 0..<9 {
            for id in ids where many.results[id] == nil && many.request(id) != nil {
                let isFirst = many.results.isEmpty && many.sent.count == 1
                many.respond(id, 401, isFirst ? realms : ("WWW-Authenticate", "Basic realm=\"b\""))
            }
        }
        #expect(many.sent == [basic("bob", "wrong")])
    }

    @Test func anotherSchemeGetsItAfterAll() throws {
        var run = try run("https://h/")
        run.challengeDigest(nonce: "n")
        #expect(run.authorizations.count == 2 && run.authorizations[1]?.hasPrefix("Digest ") == true)
    }

    @Test("Rule 16: with always nothing is sent at once after a redirect")
    func afterARedirectItWaits() throws {
        for next in ["https://h/b", "https://other/"] {
            var run = try run("https://h/a")
            run.respond(302, ("Location", next))
            #expect(run.authorizations == [basic("bob", "own"), nil], "\(next)")
        }
    }

    @Test func theSchemesThatTheFetchAllowsHold() throws {
        #expect(try run("https://h/") { $0.methods = [.httpDigest] }.authorizations == [nil])
    }

    @Test func itIsNotSentAfterAStrongerSchemeWasAccepted() throws {
        var first = try MachineRun("https://h/")
        first.start()
        first.challengeDigest(nonce: "n")
        first.answer(user: "bob", "own")
        first.respond(200)
        var run = try MachineRun("https://h/", session: first.session) {
            $0.credential = login("eve", "own")
            $0.preemption = .always
        }
        run.start()
        #expect(run.authorizations == [nil])
    }

    @Test("Rule 22: many fetches with the same wrong credential cost one failed login")
    func manyFetchesWithTheSameWrongCredentialCostOneFailedLogin() throws {
        var run = TableRun()
        let ids = try (0..<5).map { number in
            try run.fetch("https://h/\(number)") {
                $0.credential = login("bob", "wrong")
                $0.preemption = .always
                $0.interaction = .none
            }
        }
        for _ in 0..<20 {
            for id in ids where run.results[id] == nil && run.request(id) != nil { run.challenge(id) }
        }
        #expect(run.sent == [basic("bob", "wrong")])
        #expect(ids.allSatisfy { run.results[$0]?.response.status == 401 })
    }

    /// SEMANTICS rule 29: where the token is only too narrow, it was not refused.
    @Test func aTokenIsNotRefusedInTheRealmWhereItIsTooNarrow() throws {
        var run = try MachineRun("https://h/") {
            $0.credential = LoginCredential(form: .token, secret: secret("t"))
            $0.preemption = .always
        }
        run.start()
        let text = #"Bearer realm="A", error="invalid_token", Bearer realm="B", error="insufficient_scope", scope="w""#
        run.respond(401, ("WWW-Authenticate", text))
        run.answer(.reject)
        #expect(run.authorizations == ["Bearer t", "Bearer t"])
    }

    /// A client that decides about each challenge also decides about preemptive credentials.
    @Test func aClientThatDecidesAboutEverythingIsAskedBeforeTheSessionsLoginIsSent() throws {
        var first = try MachineRun("https://h/")
        first.start()
        first.challengeBasic()
        first.answer(user: "bob", "pw")
        first.respond(200)
        let everything = Subscription(delivery: .request, mode: .everything)
        var run = try MachineRun("https://h/", session: first.session, subscription: everything)
        run.start()
        #expect(run.authorizations == [nil])
        run.challengeBasic()
        #expect(run.challenges.count == 1 && run.challenges[0].proposedCredential?.source == .session)
        run.answer(.proceed)
        #expect(run.authorizations == [nil])
    }
}

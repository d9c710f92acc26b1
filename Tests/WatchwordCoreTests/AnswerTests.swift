import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The five answers, of the client and of agents, and the order in which credentials come: semantics rules 10 to 15.
@Suite struct AnswerTests {
    private let both = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", Basic realm=\"r\""

    private func asked(_ change: (inout MachineRun) -> Void = { _ in }) throws -> MachineRun {
        var run = try MachineRun()
        run.asksAgents = true
        change(&run)
        run.start()
        run.respond(401, ("WWW-Authenticate", both), body: "no")
        return run
    }

    @Test func rule10ACredentialIsOneAttempt() throws {
        for isAgent in [false, true] {
            var run = try asked()
            if isAgent { run.answer(.useDefault) }
            run.answer(user: "bob", "pw")
            #expect(run.requests.count == 2)
            run.respond(401, ("WWW-Authenticate", both))
            #expect(run.requests.count == 2)
            #expect(run.challenges.last?.previousFailureCount == 1)
            run.answer(user: "bob", "right")
            run.respond(200)
            #expect(run.result?.authentication?.source == .client)
        }
    }

    @Test func rule11ContinueIsTheResponseWithItsBody() throws {
        for isAgent in [false, true] {
            var run = try asked()
            if isAgent { run.answer(.useDefault) }
            run.answer(.proceed)
            #expect(run.result?.response.status == 401)
            #expect(run.result?.response.body == Array("no".utf8))
        }
    }

    @Test func rule12CancelHasNoBody() throws {
        for isAgent in [false, true] {
            var run = try asked()
            if isAgent { run.answer(.useDefault) }
            run.answer(.cancel)
            #expect(run.failure == .challengeCancelled)
        }
    }

    @Test func rule13DefaultIsTheAgentAndThenContinue() throws {
        var run = try asked()
        #expect(run.respondents == [.client])
        run.answer(.useDefault)
        #expect(run.respondents == [.client, .agents])
        run.answer(.useDefault)
        #expect(run.result?.response.status == 401)
        #expect(run.requests.count == 1)
    }

    @Test func rule14RejectAsksWithTheNextSchemeOfTheSameResponse() throws {
        for isAgent in [false, true] {
            var run = try asked()
            if isAgent { run.answer(.useDefault) }
            run.answer(.reject)
            #expect(run.challenges.last?.protectionSpace.authenticationMethod == .httpBasic)
            #expect(run.respondents.last == .client)
            run.answer(.reject)
            #expect(run.result?.response.status == 401)
            #expect(run.requests.count == 1)
        }
    }

    @Test func rule15TheWholeOrder() throws {
        var run = try MachineRun("http://bob:url@h/a/page", keyring: [item("1", exact("bob"), "keyring")]) {
            $0.credential = login("bob", "own")
            $0.preemption = .never
        }
        run.asksAgents = true
        let space = ProtectionSpace(
            scheme: "http", host: "h", port: 80, realm: "r", authenticationMethod: .httpBasic)
        run.session.remember(
            LoginCredential(user: "bob", password: secret("session")), for: space,
            at: try FetchURL("http://h/a/page"), digest: nil, now: .zero)
        run.start()
        for _ in 0..<4 { run.challengeBasic() }
        run.challengeBasic()
        #expect(
            run.authorizations
                == [nil, basic("bob", "own"), basic("bob", "url"), basic("bob", "session"), basic("bob", "keyring")])
        #expect(run.respondents == [.client])
        #expect(run.challenges[0].previousFailureCount == 4)
        run.answer(.useDefault)
        #expect(run.respondents == [.client, .agents])
        run.answer(.useDefault)
        #expect(run.result?.response.status == 401)
    }

    @Test func rule15InteractionSaysWhoMayBeAsked() throws {
        for (interaction, respondents) in [
            (Interaction.ownClient, [Respondent.client]), (.agent, [.agents]), (.none, []),
        ] {
            var run = try MachineRun { $0.interaction = interaction }
            run.asksAgents = true
            run.start()
            run.challengeBasic()
            #expect(run.respondents == respondents)
        }
    }

    @Test func rule15WhoDidNotSubscribeHasAnAgent() throws {
        var run = try MachineRun(isSubscribed: false)
        run.asksAgents = true
        run.start()
        run.challengeBasic()
        #expect(run.respondents == [.agents])
        run.answer(user: "bob", "pw")
        run.respond(200)
        #expect(run.result?.authentication?.source == .agent)
    }
}

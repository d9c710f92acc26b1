import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The five answers, of the client and of agents, and the order of credentials: SEMANTICS rules 10 to 15.
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

    @Test("Rule 10: a credential is one attempt")
    func aCredentialIsOneAttempt() throws {
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

    @Test("Rule 11: continue of a client or an agent returns the response with its body")
    func continueOfAnAgentReturnsTheResponseWithItsBody() throws {
        for isAgent in [false, true] {
            var run = try asked()
            if isAgent { run.answer(.useDefault) }
            run.answer(.proceed)
            #expect(run.result?.response.status == 401)
            #expect(run.result?.response.body == Array("no".utf8))
        }
    }

    @Test("Rule 12: cancel of a client or an agent fails the fetch")
    func cancelReturnsNoBody() throws {
        for isAgent in [false, true] {
            var run = try asked()
            if isAgent { run.answer(.useDefault) }
            run.answer(.cancel)
            #expect(run.failure == .challengeCancelled)
        }
    }

    @Test("Rule 13: default asks the agent, then continues")
    func defaultAsksTheAgentThenContinues() throws {
        var run = try asked()
        #expect(run.respondents == [.client])
        run.answer(.useDefault)
        #expect(run.respondents == [.client, .agents])
        run.answer(.useDefault)
        #expect(run.result?.response.status == 401)
        #expect(run.requests.count == 1)
    }

    @Test("Rule 14: after reject the next scheme of the same response is asked about")
    func rejectAsksWithTheNextSchemeOfTheSameResponse() throws {
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

    @Test("Rule 15: credentials are used in the documented order")
    func credentialsAreUsedInTheDocumentedOrder() throws {
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

    @Test("Rule 15: interaction limits the respondents")
    func interactionLimitsTheRespondents() throws {
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

    @Test("Rule 15: the agent is asked for a client that did not subscribe")
    func theAgentIsAskedForAClientThatDidNotSubscribe() throws {
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

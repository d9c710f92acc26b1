import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Questions without an answer: SECURITY-RULES X1, SEMANTICS rules 21 and 26.
@Suite struct UnansweredTests {
    private let everything = Subscription(delivery: .request, mode: .everything)

    private func runWithStored(_ change: (inout FetchRunParams) -> Void = { _ in }) throws -> MachineRun {
        var run = try MachineRun(
            subscription: everything, keyring: [item("1", exact("bob"), "stored")], change: change)
        run.start()
        run.challengeBasic()
        return run
    }

    @Test("Rule X1: no answer sends no stored credential")
    func noAnswerSendsNoStoredCredential() throws {
        var run = try runWithStored()
        #expect(run.challenges[0].proposedCredential?.source == .keyring)
        run.unanswered()
        #expect(run.authorizations == [nil])
        #expect(run.respondents == [.client, .agents])
        #expect(run.result?.response.status == 401)
    }

    @Test("Rule X1: the answer default still sends a stored credential")
    func theAnswerDefaultStillSendsAStoredCredential() throws {
        var run = try runWithStored()
        run.answer(.useDefault)
        #expect(run.authorizations == [nil, basic("bob", "stored")])
    }

    @Test("Rule 21: the agent is asked after the client has disconnected")
    func theAgentIsAskedAfterTheClientHasDisconnected() throws {
        for answer in [ChallengeAnswer.credential(.proposed), .useDefault, .proceed] {
            var run = try runWithStored()
            run.asksAgents = true
            run.unanswered()
            #expect(run.challenges.map(\.proposedCredential?.source) == [.keyring, .keyring])
            run.answer(answer)
            // The credential is sent only if the agent answers with it; its `default` does not count as the client's answer.
            let isSent = answer == .credential(.proposed)
            #expect(run.authorizations == (isSent ? [nil, basic("bob", "stored")] : [nil]))
        }
    }

    @Test("Rule X1: a reject of the agent does not answer for the client")
    func aRejectOfTheAgentDoesNotAnswerForTheClient() throws {
        var run = try MachineRun(subscription: everything, keyring: [item("1", exact("bob"), "stored")])
        run.asksAgents = true
        run.start()
        run.respond(
            401, ("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", Basic realm=\"r\""))
        run.unanswered()
        run.answer(.reject)
        #expect(run.challenges.map(\.protectionSpace.authenticationMethod) == [.httpDigest, .httpDigest, .httpBasic])
        #expect(run.respondents == [.client, .agents, .agents])
        #expect(run.authorizations == [nil])
    }

    /// The answer stays valid while it waits for the verdict on the attempt of another fetch.
    @Test("Rules 22 and X1: an answer that waits for the attempt of another fetch is not asked for again")
    func anAnswerToAnAbandonedQuestionIsNotAskedForTwice() throws {
        var run = TableRun()
        let other = try run.fetch(client: 2) { $0.credential = login("bob", "pw") }
        let first = try run.fetch(client: 1, subscription: everything)
        run.challenge(first)
        run.unanswered(first)
        run.challenge(other)
        run.answer(first, user: "bob", "pw")
        let asked = run.challenges.count
        run.respond(other, 200)
        #expect(run.sent == [basic("bob", "pw"), basic("bob", "pw")] && run.challenges.count == asked)
    }

    @Test("Rule X1: no answer of the agent sends nothing")
    func noAnswerOfTheAgentSendsNothing() throws {
        var run = try runWithStored()
        run.asksAgents = true
        run.unanswered()
        run.unanswered()
        #expect(run.authorizations == [nil])
        #expect(run.result?.response.status == 401)
    }

    @Test("Rule X1: a credential stored while the question is open is not sent without an answer")
    func aCredentialStoredWhileTheQuestionIsOpenIsNotSentWithoutAnAnswer() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        #expect(run.isAsking)
        _ = run.table.give(
            login("bob", "new"), for: SpacePattern(scheme: "http", host: "h", port: 80), of: ClientTag(value: 2),
            now: .zero)
        run.unanswered()
        #expect(run.authorizations == [nil])
        #expect(run.result?.response.status == 401)
    }

    @Test("Rule X1: the credential of the URL is not sent without an answer")
    func theCredentialOfTheURLIsNotSentWithoutAnAnswer() throws {
        var run = try MachineRun("http://carol:url@h/", subscription: everything)
        run.start()
        run.challengeBasic()
        run.unanswered()
        #expect(run.authorizations == [nil])
    }

    @Test("Rule X1: a waiting fetch inherits the missing answer of its own client only")
    func aWaitingFetchInheritsTheMissingAnswerOfItsOwnClientOnly() throws {
        var run = TableRun(isKeyringEnabled: true)
        let first = try run.fetch(client: 1, subscription: everything)
        let second = try run.fetch(client: 1, subscription: everything)
        let other = try run.fetch(client: 2)
        for id in [first, second, other] { run.challenge(id) }
        run.found(first, [item("1", exact("bob"), "stored")])
        run.unanswered(first)
        // The question goes to the agents next, and there are none.
        run.answer(first, .useDefault)
        #expect(run.results[first]?.response.status == 401)
        if run.isLookingUp(second) { run.found(second, [item("1", exact("bob"), "stored")]) }
        #expect(run.results[second]?.response.status == 401)
        // Without a question it would have been sent at once.
        #expect(run.sent.isEmpty)
        run.found(other, [item("1", exact("bob"), "stored")])
        #expect(run.sent == [basic("bob", "stored")])
    }

    @Test("Rule 21: fetches that end together do not take over each other's question")
    func fetchesThatEndTogetherDoNotTakeOverEachOthersQuestion() throws {
        var run = TableRun()
        let subscription = Subscription(delivery: .request, mode: .everything)
        let ids = try (0..<3).map { _ in try run.fetch(client: 1, subscription: subscription) }
        let other = try run.fetch(client: 2, subscription: subscription)
        for id in ids + [other] { run.challenge(id) }
        #expect(run.asking == [ids[0]])
        let asked = run.challenges.count
        run.abort(ids)
        #expect(ids.allSatisfy { run.failures[$0] != nil })
        #expect(run.asking == [other])
        #expect(run.challenges.count == asked + 1)
        #expect(run.sent.isEmpty)
    }

    @Test("Rule X1: after an unanswered consultation no credential is used and no one is asked")
    func anUnansweredConsultationUsesNothingAndAsksNoQuestion() throws {
        let consulting = Subscription(delivery: .request, asksCanAuthenticate: true)
        var run = try MachineRun(subscription: consulting, keyring: [item("1", exact("bob"), "stored")])
        run.asksAgents = true
        run.start()
        run.challengeBasic()
        run.consulted(nil)
        #expect(run.lookUps == 0)
        #expect(run.challenges.isEmpty)
        #expect(run.result?.response.status == 401)
    }

    @Test("Rule X1: an unanswered consultation prevents the preemptive attempt")
    func anUnansweredConsultationPreventsThePreemptiveAttempt() throws {
        var first = try MachineRun()
        first.start()
        first.challengeBasic()
        first.answer(user: "bob", "pw")
        first.respond(200)
        let consulting = Subscription(delivery: .request, asksCanAuthenticate: true)
        var run = try MachineRun(session: first.session, subscription: consulting)
        run.start()
        run.consulted(nil)
        #expect(run.authorizations == [nil])
        run.challengeBasic()
        #expect(run.result?.response.status == 401)
    }

    @Test("Rule X1: a remembered certificate is not sent without an answer")
    func aRememberedCertificateIsNotSentWithoutAnAnswer() throws {
        var run = TableRun()
        let consenting = Subscription(delivery: .request, mode: .everything)
        let url = "https://h/"
        let first = try run.fetch(url, subscription: consenting)
        run.fail(first, .certificate(.clientCertificateRequired))
        run.answer(first, .credential(.certificate(certificate("one", .forSession))))
        run.respond(first, 200)
        let second = try run.fetch(url, subscription: consenting)
        run.fail(second, .certificate(.clientCertificateRequired))
        #expect(run.question(second)?.proposedCredential?.source == .session)
        run.unanswered(second)
        if run.question(second) != nil { run.answer(second, .useDefault) }
        #expect(run.requests[second]?.allSatisfy { $0.shownCertificate == nil } == true)
    }

    /// The request that was delayed by the certificate challenge would have contained the session's password.
    @Test("Rule X1: no answer about a certificate sends no password")
    func noAnswerAboutACertificateSendsNoPassword() throws {
        var run = TableRun()
        let consenting = Subscription(delivery: .request, mode: .everything)
        let first = try run.fetch("https://h/")
        run.challenge(first)
        run.answer(first, user: "bob", "pw")
        run.respond(first, 200)
        let second = try run.fetch("https://h/", subscription: consenting)
        run.fail(second, .certificate(.clientCertificateRequired))
        let before = run.sent.count
        run.unanswered(second)
        if run.question(second) != nil { run.unanswered(second) }
        #expect(run.sent.count == before)
    }

    @Test("Rule X1: a client that disconnects has not accepted a certificate it was asked about")
    func aClientThatDecidesAboutEveryCertificateAndDisconnectsHasNotAcceptedIt() throws {
        var run = TableRun()
        let id = try run.fetch("https://h/", subscription: everything) { $0.tls.trust = .always }
        run.fail(id, .untrusted(1, []))
        #expect(run.question(id) != nil)
        run.unanswered(id)
        if run.question(id) != nil { run.answer(id, .useDefault) }
        #expect(run.failures[id]?.kind == .serverNotTrusted)
        #expect(run.requests[id]?.count == 1)
    }
}

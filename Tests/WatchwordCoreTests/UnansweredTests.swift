import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Questions that nobody answers: security rule X1, semantics rules 21 and 26.
@Suite struct UnansweredTests {
    private let everything = Subscription(delivery: .request, mode: .everything)

    private func runWithStored(_ change: (inout FetchRunParams) -> Void = { _ in }) throws -> MachineRun {
        var run = try MachineRun(
            subscription: everything, keyring: [item("1", exact("bob"), "stored")], change: change)
        run.start()
        run.challengeBasic()
        return run
    }

    @Test func x1SilenceSendsNothingThatIsStored() throws {
        var run = try runWithStored()
        #expect(run.challenges[0].proposedCredential?.source == .keyring)
        run.unanswered()
        #expect(run.authorizations == [nil])
        #expect(run.respondents == [.client, .agents])
        #expect(run.result?.response.status == 401)
    }

    @Test func x1DefaultOfTheClientStillSendsIt() throws {
        var run = try runWithStored()
        run.answer(.useDefault)
        #expect(run.authorizations == [nil, basic("bob", "stored")])
    }

    @Test func rule21TheAgentHasTheQuestionThen() throws {
        for answer in [ChallengeAnswer.credential(.proposed), .useDefault, .proceed] {
            var run = try runWithStored()
            run.asksAgents = true
            run.unanswered()
            #expect(run.challenges.map(\.proposedCredential?.source) == [.keyring, .keyring])
            run.answer(answer)
            // Only what the agent says sends it; its `default` does not speak for the client.
            let isSent = answer == .credential(.proposed)
            #expect(run.authorizations == (isSent ? [nil, basic("bob", "stored")] : [nil]))
        }
    }

    @Test func x1ARejectionByTheAgentDoesNotAnswerForTheClient() throws {
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

    /// The answer counts, however long it has to wait for the verdict on another fetch's try.
    @Test func x1AnAnswerToAnAbandonedQuestionIsNotAskedForTwice() throws {
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

    @Test func x1SilenceOfTheAgentSendsNothing() throws {
        var run = try runWithStored()
        run.asksAgents = true
        run.unanswered()
        run.unanswered()
        #expect(run.authorizations == [nil])
        #expect(run.result?.response.status == 401)
    }

    @Test func x1WhatIsStoredWhileTheQuestionIsOpenIsNotSentOverSilence() throws {
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

    @Test func x1TheURLsCredentialIsNotSentOverSilenceEither() throws {
        var run = try MachineRun("http://carol:url@h/", subscription: everything)
        run.start()
        run.challengeBasic()
        run.unanswered()
        #expect(run.authorizations == [nil])
    }

    @Test func x1WhoWaitsForTheSameAnswerInheritsTheSilenceOfItsClientOnly() throws {
        var run = TableRun(isKeyringEnabled: true)
        let first = try run.fetch(client: 1, subscription: everything)
        let second = try run.fetch(client: 1, subscription: everything)
        let other = try run.fetch(client: 2)
        for id in [first, second, other] { run.challenge(id) }
        run.found(first, [item("1", exact("bob"), "stored")])
        run.unanswered(first)
        // Of the agents, of which there are none.
        run.answer(first, .useDefault)
        #expect(run.results[first]?.response.status == 401)
        if run.isLookingUp(second) { run.found(second, [item("1", exact("bob"), "stored")]) }
        #expect(run.results[second]?.response.status == 401)
        // Without a question it would have been sent at once.
        #expect(run.sent.isEmpty)
        run.found(other, [item("1", exact("bob"), "stored")])
        #expect(run.sent == [basic("bob", "stored")])
    }

    @Test func rule26FetchesThatEndTogetherDoNotFollowEachOther() throws {
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

    @Test func x1AnUnansweredConsultationUsesNothingAndAsksNobody() throws {
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

    @Test func x1AnUnansweredConsultationKeepsThePreemptiveAttemptBack() throws {
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

    @Test func x1ACertificateOfTheSessionIsNotShownOverSilence() throws {
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

    /// The request that was held back for the certificate would have had the session's password with it.
    @Test func x1SilenceAboutACertificateSendsNoPassword() throws {
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

    @Test func x1WhoLooksAtEveryCertificateItselfAndIsGoneHasNotAcceptedIt() throws {
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

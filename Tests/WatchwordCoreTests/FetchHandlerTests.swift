import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// A handler for a single fetch, beside the subscription of its connection: it is asked first, and decides for its fetch only.
@Suite struct FetchHandlerTests {
    private func run(
        _ handler: Subscription = Subscription(delivery: .request), isSubscribed: Bool = true,
        subscription: Subscription = Subscription(delivery: .request), session: SessionCache = SessionCache(),
        keyring: [KeyringItem]? = nil
    ) throws -> MachineRun {
        var run = try MachineRun(
            session: session, isSubscribed: isSubscribed, subscription: subscription, keyring: keyring
        ) { $0.handler = handler }
        run.asksAgents = true
        run.start()
        run.challengeBasic()
        return run
    }

    @Test("Rule 15: the order is the handler of the fetch, the subscription, agents")
    func theOrderIsHandlerConnectionAgents() throws {
        var run = try run()
        run.answer(.useDefault)
        run.answer(.useDefault)
        run.answer(.useDefault)
        #expect(run.respondents == [.handler, .client, .agents])
        #expect(run.challenges.map(\.isForHandler) == [true, false, false])
        #expect(run.result?.response.status == 401)
    }

    @Test func itNeedsNoSubscription() throws {
        var run = try run(isSubscribed: false)
        #expect(run.respondents == [.handler])
        run.answer(user: "bob", "pw")
        run.respond(200)
        #expect(run.authorizations == [nil, basic("bob", "pw")])
        #expect(run.result?.authentication?.source == .client)
    }

    @Test(arguments: [ChallengeAnswer.proceed, .cancel])
    func itsDecisionIsFinalForItsFetch(answer: ChallengeAnswer) throws {
        var run = try run()
        run.answer(answer)
        #expect(run.respondents == [.handler])
        #expect(!run.isAsking)
    }

    @Test func challengesOutsideItsMethodsGoToTheConnection() throws {
        let run = try run(Subscription(delivery: .request, methods: [.httpDigest]))
        #expect(run.respondents == [.client])
    }

    @Test func inModeEverythingStoredCredentialsAreSentOnlyAfterItsDefault() throws {
        let stored = [item("1", exact("bob"), "stored")]
        let everything = Subscription(delivery: .request, mode: .everything)
        var run = try run(everything, keyring: stored)
        #expect(run.authorizations == [nil])
        #expect(run.challenges[0].proposedCredential?.user == "bob")
        run.answer(.useDefault)
        #expect(run.authorizations == [nil, basic("bob", "stored")])
    }

    @Test func inModeEverythingNoCredentialIsSentPreemptively() throws {
        var first = try run()
        first.answer(user: "bob", "pw")
        first.respond(200)
        let second = try run(Subscription(delivery: .request, mode: .everything), session: first.session)
        #expect(second.authorizations == [nil])
        #expect(second.respondents == [.handler])
    }

    @Test func withoutItsAnswerNoStoredCredentialIsSent() throws {
        let everything = Subscription(delivery: .request, mode: .everything)
        var run = try run(everything, keyring: [item("1", exact("bob"), "stored")])
        run.unanswered()
        #expect(run.respondents == [.handler, .client])
        run.unanswered()
        run.answer(.proceed)
        #expect(run.authorizations == [nil])
    }

    @Test("Rule 3: a handler is asked about a client certificate only if it names the method")
    func inTheModeClassicItHasToNameMethodsAboutConnections() throws {
        var run = TableRun()
        let fetch = try run.fetch("https://h/", subscription: nil) { $0.handler = Subscription(delivery: .request) }
        run.fail(fetch, .certificate(.clientCertificateRequired))
        #expect(run.challenges.map(\.respondent) == [.agents])
    }

    @Test func aSubscriptionThatDecidesFirstDoesSoBehindAHandlerToo() throws {
        let everything = Subscription(delivery: .request, mode: .everything)
        var run = try run(subscription: everything, keyring: [item("1", exact("bob"), "stored")])
        #expect(run.authorizations == [nil] && run.respondents == [.handler])
        run.answer(.useDefault)
        #expect(run.authorizations == [nil] && run.respondents == [.handler, .client])
        run.answer(.useDefault)
        #expect(run.authorizations == [nil, basic("bob", "stored")])
    }

    @Test(arguments: [ChallengeAnswer.proceed, .cancel, .reject])
    func decisionsOfOtherFetchesDoNotApplyToIt(answer: ChallengeAnswer) throws {
        var run = TableRun()
        let other = try run.fetch(client: 1)
        let own = try run.fetch(client: 1) { $0.handler = Subscription(delivery: .request) }
        for id in [other, own] { run.challenge(id) }
        #expect(run.asking == [other] && run.isWaiting(own))
        run.answer(other, answer)
        if answer == .reject { run.answer(other, .proceed) }
        #expect(run.question(own)?.isForHandler == true)
    }

    @Test func itDecidesAboutACertificateThatOthersAccepted() throws {
        var run = TableRun()
        let other = try run.fetch("https://h/", client: 1, subscription: pinning)
        let own = try run.fetch("https://h/", client: 1, subscription: pinning) {
            $0.handler = Subscription(delivery: .request, mode: .everything)
        }
        for id in [other, own] { run.fail(id, .untrusted(1)) }
        #expect(run.asking == [other])
        run.answer(other, trust(1))
        #expect(run.question(own)?.isForHandler == true)
    }

    @Test func aClientThatIsNotAskedAboutConnectionsIsNotAskedAfterIt() throws {
        var run = TableRun()
        let fetch = try run.fetch("https://h/") {
            $0.handler = Subscription(delivery: .request, methods: [.clientCertificate])
        }
        run.fail(fetch, .certificate(.clientCertificateRequired))
        #expect(run.question(fetch)?.isForHandler == true)
        run.answer(fetch, .useDefault)
        #expect(run.challenges.count == 1 && run.asking.isEmpty)
    }

    @Test(arguments: [ChallengeAnswer.proceed, .cancel, .reject])
    func itsDecisionAppliesToNoOtherFetch(answer: ChallengeAnswer) throws {
        var run = TableRun()
        let own = try run.fetch(client: 1) { $0.handler = Subscription(delivery: .request) }
        let other = try run.fetch(client: 1)
        for id in [own, other] { run.challenge(id) }
        #expect(run.asking == [own])
        run.answer(own, answer)
        #expect(run.question(other)?.isForHandler == false)
    }

    @Test func itsDefaultAnswerAppliesToNoOtherFetch() throws {
        var run = TableRun()
        let ids = try (1...2).map { _ in try run.fetch(client: 1) { $0.handler = Subscription(delivery: .request) } }
        for id in ids { run.challenge(id) }
        for _ in [Respondent.handler, .client, .agents] { run.answer(ids[0], .useDefault) }
        #expect(run.question(ids[1])?.isForHandler == true)
    }

    @Test func itsCredentialServesWaitingFetches() throws {
        var run = TableRun()
        let own = try run.fetch(client: 1) { $0.handler = Subscription(delivery: .request) }
        let other = try run.fetch(client: 1)
        for id in [own, other] { run.challenge(id) }
        run.answer(own, user: "bob", "pw")
        run.serve(password: "pw")
        #expect(run.results.values.map(\.response.status) == [200, 200])
        #expect(run.challenges.count == 1)
    }
}

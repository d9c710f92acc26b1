import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Who is asked what, and when: semantics rules 2 to 6.
@Suite struct ConsultationTests {
    private let consulting = Subscription(delivery: .request, asksCanAuthenticate: true, asksUseStorage: true)
    private let everything = Subscription(delivery: .request, mode: .everything)

    private func session(password: String = "pw") throws -> SessionCache {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        run.answer(user: "bob", password)
        run.respond(200)
        return run.session
    }

    @Test func rule3BothQuestionsComeBeforeAnyAttemptAndOnce() throws {
        var run = try MachineRun(subscription: consulting, keyring: [item("1", exact("bob"), "stored")])
        run.start()
        #expect(run.consultations.isEmpty)
        run.challengeBasic()
        #expect(run.consultations.count == 1)
        guard case .canAuthenticate(let space) = run.consultations[0] else { return #expect(Bool(false)) }
        #expect(space.realm == "r")
        run.consulted(true)
        #expect(run.consultations == [.canAuthenticate(space), .useStorage])
        #expect(run.lookUps == 0)
        run.consulted(true)
        #expect(run.authorizations == [nil, basic("bob", "stored")])
        run.challengeBasic()
        #expect(run.consultations.count == 2)
        #expect(run.isAsking)
    }

    @Test func rule3TheQuestionsComeBeforeThePreemptiveAttempt() throws {
        for mayUse in [true, false] {
            var run = try MachineRun(session: session(), subscription: consulting)
            run.start()
            #expect(run.requests.isEmpty)
            run.consulted(true)
            run.consulted(mayUse)
            #expect(run.authorizations == [mayUse ? basic("bob", "pw") : nil])
        }
    }

    @Test func rule3NoToCanAuthenticateMeansStoredCredentialsOnly() throws {
        var run = try MachineRun(subscription: consulting, keyring: [item("1", exact("bob"), "stored")])
        run.asksAgents = true
        run.start()
        run.challengeBasic()
        run.consulted(false)
        run.consulted(true)
        #expect(run.authorizations == [nil, basic("bob", "stored")])
        run.challengeBasic()
        #expect(run.challenges.isEmpty)
        #expect(run.result?.response.status == 401)
    }

    @Test func rule3NoToUseStorageMeansThatNothingIsReadWrittenOrProposed() throws {
        var run = try MachineRun(subscription: consulting, keyring: [item("1", exact("bob"), "stored")])
        run.start()
        run.challengeBasic()
        run.consulted(true)
        run.consulted(false)
        #expect(run.lookUps == 0)
        #expect(run.challenges[0].proposedCredential == nil)
        #expect(run.challenges[0].persistenceAllowed == [.none])
        run.answer(user: "bob", "pw", .permanent)
        run.respond(200)
        #expect(run.session.count == 0)
        #expect(run.effects.isEmpty)
    }

    @Test func rule3WhoDoesNotAnswerTheQuestionsIsNotAskedThem() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        #expect(run.consultations.isEmpty)
        #expect(run.isAsking)
    }

    @Test func rule3WithoutStorageNobodyIsAskedWhetherItMayBeUsed() throws {
        var run = try MachineRun(subscription: consulting) { $0.useStorage = false }
        run.start()
        run.challengeBasic()
        run.consulted(true)
        #expect(run.consultations.count == 1)
        #expect(run.isAsking)
    }

    @Test func rule4AStoredCredentialIsTriedSilentlyAndOnce() throws {
        var run = try MachineRun(keyring: [item("1", exact("bob"), "stored")])
        run.start()
        run.challengeBasic()
        #expect(run.challenges.isEmpty)
        #expect(run.authorizations == [nil, basic("bob", "stored")])
        run.challengeBasic()
        #expect(run.lookUps == 1)
        #expect(run.challenges.count == 1)
        run.answer(user: "bob", "other")
        run.challengeBasic()
        #expect(run.lookUps == 1)
    }

    @Test func rule5EverythingAsksAtOnceAndProposesWhatIsStored() throws {
        var run = try MachineRun(subscription: everything, keyring: [item("1", exact("bob"), "stored")])
        run.start()
        run.challengeBasic()
        #expect(run.authorizations == [nil])
        let proposed = ProposedCredential(user: "bob", hasPassword: true, source: .keyring)
        #expect(run.challenges[0].proposedCredential == proposed)
        #expect(run.challenges[0].previousFailureCount == 0)
        run.answer(.credential(.proposed))
        #expect(run.authorizations == [nil, basic("bob", "stored")])
        run.respond(200)
        #expect(run.result?.authentication?.source == .keyring)
    }

    @Test func rule5EverythingConsultsNobody() throws {
        var subscription = consulting
        subscription.mode = .everything
        var run = try MachineRun(subscription: subscription)
        run.start()
        run.challengeBasic()
        #expect(run.consultations.isEmpty)
        #expect(run.isAsking)
    }

    @Test func rule5InEverythingDefaultTriesWhatIsStored() throws {
        var run = try MachineRun("http://carol:url@h/", subscription: everything)
        run.start()
        run.challengeBasic()
        #expect(run.challenges[0].proposedCredential?.source == .url)
        run.answer(.useDefault)
        #expect(run.authorizations == [nil, basic("carol", "url")])
        run.challengeBasic()
        #expect(run.challenges.count == 2)
        #expect(run.challenges[1].previousFailureCount == 1)
        run.answer(.useDefault)
        #expect(run.respondents == [.client, .client, .agents])
        #expect(run.result?.response.status == 401)
    }

    @Test func rule6AProposedCredentialThatWasRefusedIsForTheWindowOnly() throws {
        var run = try MachineRun(subscription: everything, keyring: [item("1", exact("bob"), "stored")])
        run.start()
        run.challengeBasic()
        run.answer(.credential(.proposed))
        run.challengeBasic()
        #expect(run.challenges[1].proposedCredential?.user == "bob")
        run.answer(.credential(.proposed))
        #expect(run.challenges[2].error == .credentialAlreadyRefused)
        #expect(run.authorizations.count == 2)
    }

    @Test func rule6AProposedCredentialMayLackAPassword() throws {
        var run = try MachineRun("http://bob@h/")
        run.start()
        run.challengeBasic()
        #expect(
            run.challenges[0].proposedCredential == ProposedCredential(user: "bob", hasPassword: false, source: .url))
        run.answer(.credential(.proposed))
        #expect(run.challenges[1].error == .nothingProposed)
    }

    @Test func aSubscriptionCoversHostsAndMethods() throws {
        for (subscription, respondent) in [
            (Subscription(delivery: .request, hosts: [try HostPattern("h")]), Respondent.client),
            (Subscription(delivery: .request, hosts: [try HostPattern("i")]), .agents),
            (Subscription(delivery: .request, hosts: []), .agents),
            (Subscription(delivery: .request, methods: [.httpBasic]), .client),
            (Subscription(delivery: .request, methods: [.httpDigest]), .agents),
            (Subscription(delivery: .none), .agents),
        ] {
            var run = try MachineRun(subscription: subscription)
            run.start()
            run.challengeBasic()
            #expect(run.respondents.first == respondent)
        }
    }

    @Test func rule3WhoWasNotAskedAboutStorageForALockKeepsNothingAfterIt() throws {
        var run = TableRun()
        run.take(run.table.lock())
        let fetch = try run.fetch(subscription: Subscription(delivery: .request, asksUseStorage: true))
        run.challenge(fetch)
        #expect(run.question(fetch) != nil)
        run.table.unlock()
        run.answer(fetch, user: "bob", "pw")
        run.respond(fetch, 200)
        #expect(run.table.sessionCount == 0)
    }
}

import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Consultations of a client and their order: SEMANTICS rules 2 to 6.
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

    @Test("Rule 3: canAuthenticate and useStorage come before any attempt, once")
    func canAuthenticateAndUseStorageComeBeforeAnyAttemptOnce() throws {
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

    @Test("Rule 3: canAuthenticate and useStorage come before a preemptive attempt")
    func canAuthenticateAndUseStorageComeBeforeAPreemptiveAttempt() throws {
        for mayUse in [true, false] {
            var run = try MachineRun(session: session(), subscription: consulting)
            run.start()
            #expect(run.requests.isEmpty)
            run.consulted(true)
            run.consulted(mayUse)
            #expect(run.authorizations == [mayUse ? basic("bob", "pw") : nil])
        }
    }

    @Test("Rule 3: no to canAuthenticate means stored credentials only")
    func noToCanAuthenticateMeansStoredCredentialsOnly() throws {
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

    @Test("Rule 3: no to useStorage means that nothing is read, written or proposed")
    func noToUseStorageMeansThatNothingIsReadWrittenOrProposed() throws {
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

    @Test("Rule 3: a client that did not request canAuthenticate and useStorage gets neither")
    func aClientThatDoesNotImplementTheTwoRequestsGetsNeither() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        #expect(run.consultations.isEmpty)
        #expect(run.isAsking)
    }

    @Test("Rule 3: without storage useStorage is not asked")
    func withoutStorageUseStorageIsNotAsked() throws {
        var run = try MachineRun(subscription: consulting) { $0.useStorage = false }
        run.start()
        run.challengeBasic()
        run.consulted(true)
        #expect(run.consultations.count == 1)
        #expect(run.isAsking)
    }

    @Test("Rule 4: a stored credential is tried first, silently and once")
    func aStoredCredentialIsTriedSilentlyAndOnce() throws {
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

    @Test("Rule 5: the mode everything asks at once and proposes the stored credential")
    func theModeEverythingAsksAtOnceAndProposesTheStoredCredential() throws {
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

    @Test("Rule 5: the mode everything asks neither canAuthenticate nor useStorage")
    func theModeEverythingAsksNeitherCanAuthenticateNorUseStorage() throws {
        var subscription = consulting
        subscription.mode = .everything
        var run = try MachineRun(subscription: subscription)
        run.start()
        run.challengeBasic()
        #expect(run.consultations.isEmpty)
        #expect(run.isAsking)
    }

    @Test("Rules 5 and 13: in the mode everything default uses the credential of the URL, then asks the agent")
    func inTheModeEverythingDefaultTriesTheStoredCredential() throws {
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

    @Test("Rule 6: a refused proposed credential only prefills a prompt")
    func aRefusedProposedCredentialOnlyPrefillsAPrompt() throws {
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

    @Test("Rule 6: a proposed credential may lack a password")
    func aProposedCredentialMayLackAPassword() throws {
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

    @Test("Rule 3: a client that was not asked about storage because of a lock stores nothing later")
    func aClientThatWasNotAskedAboutStorageDuringALockStoresNothing() throws {
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

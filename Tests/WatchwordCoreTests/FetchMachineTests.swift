import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// When somebody is asked, and what each answer does. Numbers are those of the rules in the semantics.
@Suite struct FetchMachineTests {
    @Test func fetchesWithoutAnyLogIn() throws {
        var run = try MachineRun()
        run.start()
        run.respond(200, body: "page")
        #expect(run.authorizations == [nil])
        #expect(run.result?.response.body == Array("page".utf8))
        #expect(run.result?.authentication == nil)
        #expect(run.result?.exchanges == 1)
    }

    @Test func rule1A401WithoutTheFieldIsAnOrdinaryResponse() throws {
        var run = try MachineRun { $0.credential = login("bob", "pw") }
        run.start()
        run.respond(401, ("Proxy-Authenticate", "Basic realm=\"r\""))
        #expect(run.result?.response.status == 401)
        #expect(run.authorizations == [nil])
    }

    @Test func rule1A407IsAnOrdinaryResponseWithoutAProxy() throws {
        var run = try MachineRun { $0.credential = login("bob", "pw") }
        run.start()
        run.respond(407, ("WWW-Authenticate", "Basic realm=\"r\""), ("Proxy-Authenticate", "Basic realm=\"r\""))
        #expect(run.result?.response.status == 407)
        #expect(run.authorizations == [nil])
    }

    @Test func rule1AChallengeOnASuccessStartsNothing() throws {
        var run = try MachineRun { $0.credential = login("bob", "pw") }
        run.start()
        run.respond(200, ("WWW-Authenticate", "Basic realm=\"r\""))
        #expect(run.result?.response.status == 200)
    }

    @Test func rule7CountsFailuresAndShowsTheResponseThatRefused() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        run.answer(user: "bob", "wrong")
        run.challengeBasic()
        run.answer(user: "bob", "wrong again")
        run.challengeBasic()
        #expect(run.challenges.map(\.previousFailureCount) == [0, 1, 2])
        #expect(run.challenges.map { $0.failureResponse?.status } == [401, 401, 401])
        #expect(
            run.challenges[1].proposedCredential == ProposedCredential(user: "bob", hasPassword: true, source: .client))
        run.answer(user: "bob", "right")
        run.respond(200)
        #expect(run.authorizations == [nil, basic("bob", "wrong"), basic("bob", "wrong again"), basic("bob", "right")])
        #expect(run.result?.authentication == .init(method: .httpBasic, source: .client, user: "bob"))
        #expect(run.result?.exchanges == 4)
    }

    @Test func rule7StaleIsNoFailureAndAsksNobody() throws {
        var run = try MachineRun()
        run.start()
        run.challengeDigest(nonce: "one")
        run.answer(user: "bob", "pw")
        run.challengeDigest(nonce: "two", stale: true)
        #expect(run.challenges.count == 1)
        #expect(run.requests.count == 3)
        run.respond(200)
        #expect(run.result?.authentication?.method == .httpDigest)
    }

    @Test func rule7StaleForEverGetsFourRequests() throws {
        var run = try MachineRun(isSubscribed: false) { $0.credential = login("bob", "pw") }
        run.start()
        for number in 1...4 { run.challengeDigest(nonce: "\(number)", stale: true) }
        #expect(run.requests.count == 4)
        #expect(run.result?.response.status == 401)
    }

    @Test func rule7StaleWithTheSameNonceIsARefusal() throws {
        var run = try MachineRun()
        run.start()
        run.challengeDigest(nonce: "one")
        run.answer(user: "bob", "pw")
        run.challengeDigest(nonce: "one", stale: true)
        #expect(run.challenges.last?.previousFailureCount == 1)
    }

    @Test func rule9EndsAfterTwentyRounds() throws {
        var run = try MachineRun()
        run.start()
        for number in 1...Limits.authenticationRounds {
            run.challengeBasic()
            run.answer(user: "bob", "wrong \(number)")
        }
        #expect(run.failure == nil)
        run.challengeBasic()
        #expect(run.failure == .tooManyAttempts)
        #expect(run.requests.count == Limits.authenticationRounds + 1)
    }

    @Test func rule9ARefusedCredentialIsNotSentAgain() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        run.answer(user: "bob", "wrong")
        run.challengeBasic()
        run.answer(user: "bob", "wrong")
        #expect(run.requests.count == 2)
        #expect(run.challenges.last?.error == .credentialAlreadyRefused)
        #expect(run.challenges.last?.previousFailureCount == 2)
        run.answer(.credential(.proposed))
        #expect(run.requests.count == 2)
        #expect(run.challenges.last?.error == .credentialAlreadyRefused)
        for _ in 0..<Limits.authenticationRounds where run.failure == nil { run.answer(user: "bob", "wrong") }
        #expect(run.failure == .tooManyAttempts)
    }

    @Test func rule11ContinueGivesTheResponseWithItsBody() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic(body: "please log in")
        run.answer(.proceed)
        #expect(run.result?.response.status == 401)
        #expect(run.result?.response.body == Array("please log in".utf8))
        #expect(run.result?.authentication == nil)
    }

    @Test func rule12CancelFails() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        run.answer(.cancel)
        #expect(run.failure == .challengeCancelled)
    }

    @Test func rule13DefaultEndsInContinueWhenNothingIsLeft() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        run.answer(.useDefault)
        #expect(run.result?.response.status == 401)
        #expect(run.requests.count == 1)
    }

    @Test func rule14RejectGoesThroughTheSchemes() throws {
        var run = try MachineRun()
        run.start()
        run.respond(
            401, ("WWW-Authenticate", "Basic realm=\"b\", Digest realm=\"d\", nonce=\"n\", qop=\"auth\""), body: "body")
        run.answer(.reject)
        #expect(run.challenges.map(\.protectionSpace.authenticationMethod) == [.httpDigest, .httpBasic])
        #expect(run.challenges.map(\.offers.count) == [2, 2])
        run.answer(.reject)
        #expect(run.result?.response.body == Array("body".utf8))
        #expect(run.requests.count == 1)
    }

    @Test func b2AUserWithAColonIsNotSentByBasic() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        run.answer(user: "a:b", "pw")
        #expect(run.challenges.last?.error == .credentialNotUsable)
        #expect(run.challenges.last?.previousFailureCount == 0)
        #expect(run.requests.count == 1)
    }

    @Test func proposedWithoutAPasswordIsAskedAgain() throws {
        var run = try MachineRun("http://bob@h/")
        run.start()
        run.challengeBasic()
        #expect(
            run.challenges[0].proposedCredential == ProposedCredential(user: "bob", hasPassword: false, source: .url))
        run.answer(.credential(.proposed))
        #expect(run.challenges.last?.error == .nothingProposed)
        #expect(run.requests.count == 1)
    }

    @Test func nobodyIsAskedWhoDidNotSubscribeOrWasNotToBe() throws {
        for interaction in [Interaction.ownClient, .none, .agent] {
            var run = try MachineRun(isSubscribed: interaction != .ownClient) { $0.interaction = interaction }
            run.start()
            run.challengeBasic(body: "b")
            #expect(run.result?.response.body == Array("b".utf8))
        }
    }

    @Test func networkTimeIsLimitedAndWaitingForAnAnswerDoesNotCount() throws {
        var run = try MachineRun { $0.timeoutMs = 1000 }
        run.start()
        #expect(run.requests[0].timeout == .milliseconds(1000))
        run.now += .milliseconds(400)
        run.challengeBasic()
        run.now += .seconds(100)
        run.answer(user: "bob", "pw")
        #expect(run.requests[1].timeout == .milliseconds(600))
        run.now += .milliseconds(600)
        run.challengeBasic()
        run.answer(user: "bob", "pw2")
        #expect(run.failure == .timedOut)
    }

    @Test func everyTransferFailureHasAKind() throws {
        for kind in TransferFailure.Kind.allCases {
            var run = try MachineRun()
            run.start()
            run.fail(kind)
            #expect(run.failure != nil)
        }
    }

    @Test func rule26AnEventThatNobodyWaitsForSendsNothing() throws {
        var run = try MachineRun { $0.credential = login("bob", "pw") }
        run.answer(user: "bob", "pw")
        #expect(run.failure == .internalError)
        run.start()
        run.challengeBasic()
        #expect(run.requests.isEmpty)
        run.abort(.cancelled)
        #expect(run.failure == .internalError)
    }

    @Test func abortEndsAFetchThatIsBeingAsked() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        run.abort(.invalidAnswer)
        #expect(run.failure == .invalidAnswer)
        run.answer(user: "bob", "pw")
        #expect(run.requests.count == 1)
    }
}

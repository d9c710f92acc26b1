import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The conditions for a question, and the effect of each answer. SEMANTICS rules 1 to 14.
@Suite struct FetchMachineTests {
    @Test func fetchesWithoutAnyLogin() throws {
        var run = try MachineRun()
        run.start()
        run.respond(200, body: "page")
        #expect(run.authorizations == [nil])
        #expect(run.result?.response.body == Array("page".utf8))
        #expect(run.result?.authentication == nil)
        #expect(run.result?.exchanges == 1)
    }

    @Test("Rules 1, R11 and R14: a 401 without WWW-Authenticate is an ordinary response")
    func a401WithoutWWWAuthenticateIsAnOrdinaryResponse() throws {
        var run = try MachineRun { $0.credential = login("bob", "pw") }
        run.start()
        run.respond(401, ("Proxy-Authenticate", "Basic realm=\"r\""))
        #expect(run.result?.response.status == 401)
        #expect(run.authorizations == [nil])
    }

    @Test("Rules 1 and R13: without a proxy a 407 is an ordinary response")
    func withoutAProxyA407IsAnOrdinaryResponse() throws {
        var run = try MachineRun { $0.credential = login("bob", "pw") }
        run.start()
        run.respond(407, ("WWW-Authenticate", "Basic realm=\"r\""), ("Proxy-Authenticate", "Basic realm=\"r\""))
        #expect(run.result?.response.status == 407)
        #expect(run.authorizations == [nil])
    }

    @Test("Rules 1 and R12: a challenge field in a successful response starts nothing")
    func aChallengeFieldInASuccessfulResponseStartsNothing() throws {
        var run = try MachineRun { $0.credential = login("bob", "pw") }
        run.start()
        run.respond(200, ("WWW-Authenticate", "Basic realm=\"r\""))
        #expect(run.result?.response.status == 200)
    }

    @Test("Rule 7: failed attempts are counted and the refusing response is shown")
    func failedAttemptsAreCountedAndTheRefusingResponseIsShown() throws {
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

    @Test("Rule 7: stale does not count as a failure and raises no challenge")
    func staleIsNotAFailureAndRaisesNoChallenge() throws {
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

    @Test("Rules 7 and D12: a server that always answers stale gets four requests")
    func staleWithoutEndGetsFourRequests() throws {
        var run = try MachineRun(isSubscribed: false) { $0.credential = login("bob", "pw") }
        run.start()
        for number in 1...4 { run.challengeDigest(nonce: "\(number)", stale: true) }
        #expect(run.requests.count == 4)
        #expect(run.result?.response.status == 401)
    }

    @Test("Rule 7: stale with the same nonce is a refusal")
    func staleWithTheSameNonceIsARefusal() throws {
        var run = try MachineRun()
        run.start()
        run.challengeDigest(nonce: "one")
        run.answer(user: "bob", "pw")
        run.challengeDigest(nonce: "one", stale: true)
        #expect(run.challenges.last?.previousFailureCount == 1)
    }

    @Test("Rule 9: a fetch ends after twenty authentication rounds")
    func aFetchEndsAfterTwentyAuthenticationRounds() throws {
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

    @Test("Rule 9: a refused credential is not sent again")
    func aRefusedCredentialIsNotSentAgain() throws {
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

    @Test("Rule 11: continue returns the response with its body")
    func continueReturnsTheResponseWithItsBody() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic(body: "please log in")
        run.answer(.proceed)
        #expect(run.result?.response.status == 401)
        #expect(run.result?.response.body == Array("please log in".utf8))
        #expect(run.result?.authentication == nil)
    }

    @Test("Rule 12: cancel fails the fetch")
    func cancelFailsTheFetch() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        run.answer(.cancel)
        #expect(run.failure == .challengeCancelled)
    }

    @Test("Rule 13: default becomes continue when no respondent is left")
    func defaultBecomesContinueWhenNoRespondentIsLeft() throws {
        var run = try MachineRun()
        run.start()
        run.challengeBasic()
        run.answer(.useDefault)
        #expect(run.result?.response.status == 401)
        #expect(run.requests.count == 1)
    }

    @Test("Rule 14: reject asks about one scheme after the other")
    func rejectAsksAboutOneSchemeAfterTheOther() throws {
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

    @Test("Rule B2: a user with a colon is not sent by Basic")
    func aUserWithAColonIsNotSentByBasic() throws {
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

    @Test func onlySubscribersAreAskedAndOnlyIfInteractionIsAllowed() throws {
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

    @Test("Rule 26: an unexpected event sends nothing")
    func anUnexpectedEventSendsNothing() throws {
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

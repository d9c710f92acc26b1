import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// One question for many fetches: semantics rules 20 to 22.
@Suite struct CoalescingTests {
    /// Fifty fetches of as many clients, all challenged.
    private func crowd(
        _ count: Int = 50, clients: (Int) -> Int = { $0 }, programs: (Int) -> Int? = { _ in nil }
    ) throws -> (TableRun, [FetchID]) {
        var run = TableRun()
        var ids: [FetchID] = []
        for index in 1...count {
            ids.append(try run.fetch("http://h/a/\(index)", client: clients(index), program: programs(index)))
        }
        for id in ids { run.challenge(id) }
        return (run, ids)
    }

    @Test func rule20FiftyFetchesAskOnce() throws {
        var (run, ids) = try crowd()
        #expect(run.asking == [ids[0]])
        #expect(ids.dropFirst().allSatisfy { run.isWaiting($0) })
        run.answer(ids[0], user: "bob", "pw")
        run.serve(password: "pw")
        #expect(run.results.count == 50)
        #expect(run.results.values.allSatisfy { $0.response.status == 200 })
        #expect(run.challenges.count == 1)
        #expect(Set(run.sent) == [basic("bob", "pw")])
    }

    @Test func rule17AnAnswerForThisTimeOnlyServesTheProgramThatWasAsked() throws {
        var (run, ids) = try crowd(9) {
            $0
        } programs: {
            $0 % 3
        }
        run.answer(ids[0], user: "bob", "pw", .none)
        run.serve(password: "pw")
        #expect(Set(run.results.keys) == [ids[0], ids[3], ids[6]])
        #expect(run.asking == [ids[1]])
        #expect(run.question(ids[1])?.previousFailureCount == 0)
        run.answer(ids[1], user: "bob", "pw", .none)
        run.serve(password: "pw")
        #expect(Set(run.results.keys) == [ids[0], ids[3], ids[6], ids[1], ids[4], ids[7]])
        run.answer(ids[2], user: "bob", "pw")
        run.serve(password: "pw")
        #expect(run.results.count == 9)
        #expect(run.challenges.count == 3)
    }

    @Test func rule17HoldsForExceptions() throws {
        var run = TableRun()
        let ids = try (1...4).map { try run.fetch("https://h/", client: $0, program: $0 / 3, subscription: pinning) }
        for id in ids { run.fail(id, .untrusted(1)) }
        run.answer(ids[0], trust(1, .none))
        #expect(run.transferring == [ids[0], ids[1]])
        #expect(run.asking == [ids[2]])
    }

    @Test func rule17HoldsForClientCertificates() throws {
        var run = TableRun()
        let ids = try (1...4).map { try run.fetch("https://h/", client: $0, program: $0 / 3, subscription: pinning) }
        for id in ids { run.fail(id, .certificate(.clientCertificateRequired)) }
        #expect(run.asking == [ids[0]])
        run.answer(ids[0], .credential(.certificate(certificate("a", .none))))
        run.respond(ids[0], 200)
        #expect(run.last(ids[1])?.shownCertificate != nil)
        #expect(run.asking == [ids[2]])
    }

    @Test func rule17ACredentialOfItsOwnNeedsNoAnswer() throws {
        var run = TableRun()
        let ids = try (1...5).map { client in
            try run.fetch(client: client) {
                $0.credential = LoginCredential(user: "bob", password: secret("pw"), persistence: .none)
            }
        }
        for id in ids { run.challenge(id) }
        #expect(run.transferring == [ids[0]])
        run.respond(ids[0], 200)
        #expect(run.transferring == Array(ids.dropFirst()))
    }

    @Test func rule20AnAnswerForThisTimeOnlyServesAllThatWait() throws {
        var (run, ids) = try crowd { _ in 1 }
        run.answer(ids[0], user: "bob", "pw", .none)
        run.serve(password: "pw")
        #expect(run.results.values.allSatisfy { $0.response.status == 200 })
        #expect(run.challenges.count == 1)
        #expect(run.table.sessionCount == 0)
        let late = try run.fetch(client: 7)
        run.challenge(late)
        #expect(run.asking == [late])
    }

    @Test func rule20ContinueServesAllThatWait() throws {
        var (run, ids) = try crowd()
        run.answer(ids[0], .proceed)
        #expect(run.results.count == 50)
        #expect(run.results.values.allSatisfy { $0.response.status == 401 })
    }

    @Test func rule20CancelEndsThoseOfTheSameClientOnly() throws {
        var (run, ids) = try crowd(9) { $0 % 3 }
        run.answer(ids[0], .cancel)
        #expect(Set(run.failures.keys) == [ids[0], ids[3], ids[6]])
        #expect(run.failures.values.allSatisfy { $0.kind == .challengeCancelled })
        #expect(run.asking == [ids[1]])
        run.answer(ids[1], .cancel)
        run.answer(ids[2], user: "bob", "pw")
        run.serve(password: "pw")
        #expect(Set(run.results.keys) == [ids[2], ids[5], ids[8]])
    }

    @Test func rule20DefaultHandsTheQuestionOn() throws {
        var (run, ids) = try crowd(4) { ($0 - 1) / 2 }
        run.answer(ids[0], .useDefault)
        #expect(run.challenges.last?.respondent == .agents)
        run.answer(ids[0], .useDefault)
        #expect(run.results[ids[0]]?.response.status == 401)
        // The second fetch of the same client would get the same non-answers: it is not asked again.
        #expect(run.results[ids[1]]?.response.status == 401)
        #expect(run.asking == [ids[2]])
        #expect(run.challenges.last?.respondent == .client)
    }

    @Test func rule20RejectTakesAlongThoseOfTheSameClient() throws {
        var run = TableRun()
        let ids = try [1, 1, 2].map { try run.fetch(client: $0) }
        for id in ids { run.challenge(id, "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", Basic realm=\"r\"") }
        run.answer(ids[0], .reject)
        #expect(run.asking == [ids[0], ids[2]])
        #expect(run.question(ids[0])?.protectionSpace.authenticationMethod == .httpBasic)
        #expect(run.question(ids[2])?.protectionSpace.authenticationMethod == .httpDigest)
        #expect(run.isWaiting(ids[1]))
        run.answer(ids[0], .reject)
        #expect(run.results[ids[0]]?.response.status == 401)
        #expect(run.results[ids[1]]?.response.status == 401)
    }

    @Test func rule20OtherSpacesAreOtherQuestions() throws {
        var run = TableRun()
        let ids = try ["http://h/", "http://h:81/", "https://h/", "http://i/"].map { try run.fetch($0) }
        for id in ids { run.challenge(id) }
        let realm = try run.fetch()
        run.challenge(realm, "Basic realm=\"R\"")
        let digest = try run.fetch()
        run.challenge(digest, "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"")
        #expect(run.asking == ids + [realm, digest])
    }

    @Test func rule20WhoSharesNothingAsksForItself() throws {
        var run = TableRun()
        let open = try run.fetch(client: 1)
        run.challenge(open)
        let closed = try [1, 1, 2].map { client in try run.fetch(client: client) { $0.useStorage = false } }
        for id in closed { run.challenge(id) }
        #expect(run.asking == [open, closed[0], closed[2]])
        run.answer(closed[0], user: "bob", "pw")
        run.serve(password: "pw")
        #expect(Set(run.results.keys) == [closed[0], closed[1]])
        #expect(run.asking == [open, closed[2]])
    }

    @Test func rule20LookUpsWaitForTheQuestion() throws {
        var run = TableRun(isKeyringEnabled: true)
        let asked = try run.fetch(client: 1)
        run.challenge(asked)
        run.found(asked, [])
        let other = try run.fetch(client: 2)
        run.challenge(other)
        #expect(run.isWaiting(other))
        run.answer(asked, user: "bob", "pw")
        run.serve(password: "pw")
        #expect(run.results[other]?.response.status == 200)
        #expect(run.lookUps == 1)
    }

    @Test func rule20AnOldPasswordGivesWayToANewerOneWithoutAsking() throws {
        var run = TableRun()
        let first = try run.fetch()
        run.challenge(first)
        run.answer(first, user: "bob", "old")
        run.respond(first, 200)
        let (one, other) = (try run.fetch(), try run.fetch())
        #expect(run.sent == Array(repeating: basic("bob", "old"), count: 3))
        run.challenge(one)
        run.answer(one, user: "bob", "new")
        run.respond(one, 200)
        run.challenge(other)
        #expect(run.request(other)?.authorization?.revealed == basic("bob", "new"))
        #expect(run.challenges.count == 2)
    }

    @Test func rule21TheQuestionMovesOnWhenItsClientDies() throws {
        var (run, ids) = try crowd(3)
        run.abort(ids[0])
        #expect(run.sent.isEmpty)
        #expect(run.asking == [ids[1]])
        run.abort(ids[1])
        #expect(run.asking == [ids[2]])
        run.answer(ids[2], user: "bob", "pw")
        run.serve(password: "pw")
        #expect(Array(run.results.keys) == [ids[2]])
    }

    @Test func rule21AWaitingFetchCanLeave() throws {
        var (run, ids) = try crowd(3)
        run.abort(ids[1])
        run.answer(ids[0], user: "bob", "pw")
        run.serve(password: "pw")
        #expect(Set(run.results.keys) == [ids[0], ids[2]])
        #expect(run.table.waitingCount == 0)
    }

    @Test func rule22AWrongAnswerIsTriedOnce() throws {
        var (run, ids) = try crowd(20)
        run.answer(ids[0], user: "bob", "wrong")
        run.serve(password: "right")
        #expect(run.sent == [basic("bob", "wrong")])
        #expect(run.asking == [ids[0]])
        #expect(run.question(ids[0])?.previousFailureCount == 1)
        run.answer(ids[0], user: "bob", "right")
        run.serve(password: "right")
        #expect(run.results.count == 20)
        #expect(run.sent.filter { $0 == basic("bob", "wrong") }.count == 1)
    }

    @Test func rule22WhoeverIsAskedNextKnowsWhatWasRefused() throws {
        var (run, ids) = try crowd(2)
        run.answer(ids[0], user: "bob", "wrong")
        run.challenge(ids[0])
        run.answer(ids[0], .cancel)
        #expect(run.question(ids[1])?.previousFailureCount == 1)
        #expect(run.question(ids[1])?.proposedCredential?.user == "bob")
        run.answer(ids[1], user: "bob", "wrong")
        #expect(run.question(ids[1])?.error == .credentialAlreadyRefused)
        #expect(run.sent == [basic("bob", "wrong")])
    }

    @Test func rule22AWrongStoredPasswordIsTriedOnceByTwenty() throws {
        var run = TableRun(isKeyringEnabled: true)
        let ids = try (1...20).map { try run.fetch(client: $0) }
        for id in ids { run.challenge(id) }
        #expect(run.lookUps == 1)
        run.found(ids[0], [item("1", exact("bob"), "stale")])
        run.serve(password: "right")
        #expect(run.sent == [basic("bob", "stale")])
        #expect(run.asking == [ids[0]])
        #expect(
            run.question(ids[0])?.proposedCredential
                == ProposedCredential(user: "bob", hasPassword: true, source: .keyring))
        run.answer(ids[0], user: "bob", "right", .permanent)
        run.serve(password: "right")
        #expect(run.results.count == 20)
        #expect(run.challenges.count == 1)
    }

    @Test func rule22TheFetchsOwnWrongCredentialIsTriedOnce() throws {
        var run = TableRun()
        let ids = try (1...20).map { client in
            try run.fetch(client: client) { $0.credential = login("bob", "wrong") }
        }
        run.serve(password: "right")
        #expect(run.sent == [basic("bob", "wrong")])
        #expect(run.asking == [ids[0]])
        run.answer(ids[0], user: "bob", "right")
        run.serve(password: "right")
        #expect(run.results.count == 20)
        #expect(run.challenges.count == 1)
    }

    @Test func rule22TheFetchsOwnRightCredentialDoesNotWaitForAQuestion() throws {
        var run = TableRun()
        let asked = try run.fetch(client: 1)
        run.challenge(asked)
        let own = try run.fetch(client: 2) { $0.credential = login("bob", "right") }
        run.serve(password: "right")
        #expect(run.results[own]?.response.status == 200)
        #expect(run.asking == [asked])
    }

    @Test func rule22AServerInTroubleDecidesNothing() throws {
        var (run, ids) = try crowd(2)
        run.answer(ids[0], user: "bob", "pw")
        run.respond(ids[0], 503)
        #expect(run.results[ids[0]]?.response.status == 503)
        #expect(run.asking == [ids[1]])
        #expect(run.question(ids[1])?.previousFailureCount == 0)
    }

    @Test func aBrokenConnectionDuringTheAttemptHandsTheTurnOn() throws {
        var (run, ids) = try crowd(2)
        run.answer(ids[0], user: "bob", "pw")
        run.fail(ids[0])
        #expect(run.failures[ids[0]]?.kind == .connectionLost)
        #expect(run.asking == [ids[1]])
    }

    @Test func waitingHasAnEnd() throws {
        var (run, ids) = try crowd(2)
        run.now = Limits.turnWait - .milliseconds(1)
        run.tick()
        #expect(run.isWaiting(ids[1]))
        run.now = Limits.turnWait
        run.tick()
        #expect(run.failures[ids[1]]?.kind == .challengeTimedOut)
        #expect(run.asking == [ids[0]])
    }

    @Test func rule3WithSharingByClientStoredCredentialsStayFromWhoDoesWithout() throws {
        var run = TableRun()
        run.table = FetchTable(isKeyringEnabled: true, sharing: .client)
        let storing = try run.fetch()
        let without = try run.fetch { $0.useStorage = false }
        for id in [storing, without] { run.challenge(id) }
        run.found(storing, [item("1", exact("bob"), "pw")])
        run.respond(storing, 200)
        #expect(run.sent == [basic("bob", "pw")])
        #expect(run.asking == [without])
    }

    @Test func waitingForOneVerdictAfterTheOtherHasAnEnd() throws {
        var run = TableRun()
        let ids = try (1...3).map { client in
            try run.fetch(client: client) {
                $0.useStorage = false
                $0.credential = login("bob", "pw")
            }
        }
        for id in ids { run.challenge(id) }
        run.now = Limits.turnWait - .seconds(1)
        run.tick()
        run.fail(ids[0])
        #expect(run.request(ids[1]) != nil)
        #expect(run.isWaiting(ids[2]))
        run.now = Limits.turnWait
        run.tick()
        #expect(run.failures[ids[2]]?.kind == .challengeTimedOut)
        #expect(run.request(ids[1]) != nil)
    }

    @Test func aResponseThatTakesLongKeepsNobodyFromTheServer() throws {
        var run = TableRun()
        let ids = try (1...3).map { client in
            try run.fetch(client: client) { $0.credential = login("bob", "pw") }
        }
        for id in ids { run.challenge(id) }
        let asked = try run.fetch(client: 4)
        run.challenge(asked)
        run.answer(asked, user: "bob", "pw")
        #expect(run.transferring == [ids[0]])
        run.now = Limits.verdictWait
        run.tick()
        #expect(run.transferring == [ids[0], asked])
        run.respond(asked, 200)
        #expect(run.transferring == [ids[0], ids[1]])
        run.serve(password: "pw")
        #expect(run.results.count == 4)
        #expect(run.table.waitingCount == 0)
    }
}

import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// One question for many fetches: SEMANTICS rules 20 to 22.
@Suite struct CoalescingTests {
    /// Starts and challenges fifty fetches, each of its own client.
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

    @Test("Rule 20: fifty fetches ask once")
    func fiftyFetchesAskOnce() throws {
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

    @Test("Rule 17: an answer with persistence none serves the program that was asked")
    func anAnswerWithPersistenceNoneServesTheProgramThatWasAsked() throws {
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

    @Test("Rule 17: an exception with persistence none serves the program that was asked")
    func anExceptionWithPersistenceNoneServesTheProgramThatWasAsked() throws {
        var run = TableRun()
        let ids = try (1...4).map { try run.fetch("https://h/", client: $0, program: $0 / 3, subscription: pinning) }
        for id in ids { run.fail(id, .untrusted(1)) }
        run.answer(ids[0], trust(1, .none))
        #expect(run.transferring == [ids[0], ids[1]])
        #expect(run.asking == [ids[2]])
    }

    @Test("Rule 17: a client certificate with persistence none serves the program that was asked")
    func aClientCertificateWithPersistenceNoneServesTheProgramThatWasAsked() throws {
        var run = TableRun()
        let ids = try (1...4).map { try run.fetch("https://h/", client: $0, program: $0 / 3, subscription: pinning) }
        for id in ids { run.fail(id, .certificate(.clientCertificateRequired)) }
        #expect(run.asking == [ids[0]])
        run.answer(ids[0], .credential(.certificate(certificate("a", .none))))
        run.respond(ids[0], 200)
        #expect(run.last(ids[1])?.shownCertificate != nil)
        #expect(run.asking == [ids[2]])
    }

    @Test("Rules 17 and 22: fetches with the same own credential send it once the server has accepted it")
    func aFetchWithItsOwnCredentialNeedsNoAnswer() throws {
        var run = TableRun()
        let ids = try (1...5).map { client in
            try run.fetch(client: client) {
                $0.credential = LoginCredential(user: "bob", password: secret("pw"), persistence: .none)
            }
        }
        for id in ids { run.challenge(id) }
        #expect(run.transferring == [ids[0]])
        run.respond(ids[0], 200)
        #expect(run.transferring == Array(ids[1...3]))
        run.respond(ids[1], 200)
        #expect(run.transferring == Array(ids[2...4]))
    }

    @Test("Rule 20: an answer with persistence none serves all waiting fetches of its program")
    func anAnswerWithPersistenceNoneServesAllWaitingFetchesOfItsProgram() throws {
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

    @Test("Rule 20: continue serves all waiting fetches")
    func continueServesAllWaitingFetches() throws {
        var (run, ids) = try crowd()
        run.answer(ids[0], .proceed)
        #expect(run.results.count == 50)
        #expect(run.results.values.allSatisfy { $0.response.status == 401 })
    }

    @Test("Rule 20: cancel ends the fetches of the same client only")
    func cancelEndsTheFetchesOfTheSameClientOnly() throws {
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

    @Test("Rule 20: default passes the question to the next respondent")
    func defaultPassesTheQuestionOn() throws {
        var (run, ids) = try crowd(4) { ($0 - 1) / 2 }
        run.answer(ids[0], .useDefault)
        #expect(run.challenges.last?.respondent == .agents)
        run.answer(ids[0], .useDefault)
        #expect(run.results[ids[0]]?.response.status == 401)
        // The second fetch of the same client shares the answers `default`: no respondent is asked again.
        #expect(run.results[ids[1]]?.response.status == 401)
        #expect(run.asking == [ids[2]])
        #expect(run.challenges.last?.respondent == .client)
    }

    @Test("Rule 20: reject counts for the fetches of the same client")
    func rejectCountsForTheFetchesOfTheSameClient() throws {
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

    @Test("Rule 20: each protection space has its own question")
    func otherSpacesAreOtherQuestions() throws {
        var run = TableRun()
        let ids = try ["http://h/", "http://h:81/", "https://h/", "http://i/"].map { try run.fetch($0) }
        for id in ids { run.challenge(id) }
        let realm = try run.fetch()
        run.challenge(realm, "Basic realm=\"R\"")
        let digest = try run.fetch()
        run.challenge(digest, "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"")
        #expect(run.asking == ids + [realm, digest])
    }

    @Test("Rule 20: fetches without storage have a question for each client")
    func aClientThatSharesNothingHasQuestionsOfItsOwn() throws {
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

    @Test("Rule 20: lookups wait for the open question")
    func lookupsWaitForTheOpenQuestion() throws {
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

    @Test("Rule 20: a newer password is used after the failure of an older one without a question")
    func aNewerPasswordReplacesAFailedOlderOneWithoutAQuestion() throws {
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

    @Test("Rule 21: the question of a client that disconnects moves to the next client")
    func theQuestionMovesOnWhenItsClientDisconnects() throws {
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

    @Test("Rule 21: an aborted fetch leaves the queue, and the others are served")
    func aWaitingFetchCanBeCancelled() throws {
        var (run, ids) = try crowd(3)
        run.abort(ids[1])
        run.answer(ids[0], user: "bob", "pw")
        run.serve(password: "pw")
        #expect(Set(run.results.keys) == [ids[0], ids[2]])
        #expect(run.table.waitingCount == 0)
    }

    @Test("Rule 22: a wrong answer is sent once")
    func aWrongAnswerIsTriedOnce() throws {
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

    @Test("Rules 6, 9 and 22: the next question proposes the refused answer, which is not sent again")
    func theNextQuestionProposesTheRefusedAnswer() throws {
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

    @Test("Rule 22: twenty fetches send a wrong stored password once")
    func twentyFetchesTryAWrongStoredPasswordOnce() throws {
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

    @Test("Rule 22: a wrong credential of the fetches themselves is sent once")
    func aWrongCredentialOfTheFetchesThemselvesIsTriedOnce() throws {
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

    @Test("Rule 20: a fetch with its own credential does not wait for an open question")
    func aRightCredentialOfTheFetchItselfWaitsForNoQuestion() throws {
        var run = TableRun()
        let asked = try run.fetch(client: 1)
        run.challenge(asked)
        let own = try run.fetch(client: 2) { $0.credential = login("bob", "right") }
        run.serve(password: "right")
        #expect(run.results[own]?.response.status == 200)
        #expect(run.asking == [asked])
    }

    @Test("Rule 22: a server error neither accepts nor refuses a credential")
    func aServerErrorIsNotAVerdict() throws {
        var (run, ids) = try crowd(2)
        run.answer(ids[0], user: "bob", "pw")
        run.respond(ids[0], 503)
        #expect(run.results[ids[0]]?.response.status == 503)
        #expect(run.asking == [ids[1]])
        #expect(run.question(ids[1])?.previousFailureCount == 0)
    }

    @Test func aConnectionFailureDuringTheAttemptPassesTheLeaseOn() throws {
        var (run, ids) = try crowd(2)
        run.answer(ids[0], user: "bob", "pw")
        run.fail(ids[0])
        #expect(run.failures[ids[0]]?.kind == .connectionLost)
        #expect(run.asking == [ids[1]])
    }

    @Test func waitingTimesOut() throws {
        var (run, ids) = try crowd(2)
        run.now = Limits.leaseWait - .milliseconds(1)
        run.tick()
        #expect(run.isWaiting(ids[1]))
        run.now = Limits.leaseWait
        run.tick()
        #expect(run.failures[ids[1]]?.kind == .challengeTimedOut)
        #expect(run.asking == [ids[0]])
    }

    @Test("Rule 3: with sharing by client, a fetch without storage uses no stored credential")
    func withSharingByClientStoredCredentialsStayAwayFromAClientThatDeclinesStorage() throws {
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

    @Test func waitingForSuccessiveVerdictsTimesOut() throws {
        var run = TableRun()
        let ids = try (1...3).map { client in
            try run.fetch(client: client) {
                $0.useStorage = false
                $0.credential = login("bob", "pw")
            }
        }
        for id in ids { run.challenge(id) }
        run.now = Limits.leaseWait - .seconds(1)
        run.tick()
        run.fail(ids[0])
        #expect(run.request(ids[1]) != nil)
        #expect(run.isWaiting(ids[2]))
        run.now = Limits.leaseWait
        run.tick()
        #expect(run.failures[ids[2]]?.kind == .challengeTimedOut)
        #expect(run.request(ids[1]) != nil)
    }

    @Test("Rule 22: a slow response delays the other fetches with the same credential for five seconds")
    func aResponseThatTakesLongDelaysTheOthersForSeconds() throws {
        var run = TableRun()
        let ids = try (1...3).map { client in
            try run.fetch(client: client) { $0.credential = login("bob", "pw") }
        }
        for id in ids { run.challenge(id) }
        let asked = try run.fetch(client: 4)
        run.challenge(asked)
        run.answer(asked, user: "bob", "pw")
        for sent in 1...3 {
            #expect(run.transferring == Array(ids.prefix(sent)))
            #expect(run.isWaiting(asked))
            run.now += Limits.verdictWait
            run.tick()
        }
        #expect(run.isWaiting(asked), "three without a verdict are enough")
        run.respond(ids[1], 200)
        #expect(run.request(asked) != nil)
        run.serve(password: "pw")
        #expect(run.results.count == 4)
        #expect(run.table.waitingCount == 0)
    }

    @Test("Rule 22: a slow page after the first login delays others for five seconds, and three share the answer")
    func aSlowPageAfterTheFirstLoginDelaysOthersForSeconds() throws {
        var (run, ids) = try crowd(6)
        run.now = .seconds(30)
        run.answer(ids[0], user: "bob", "pw")
        #expect(run.table.deadline(of: ids[1]) == run.now + Limits.verdictWait)
        run.now += Limits.verdictWait - .milliseconds(1)
        run.tick()
        #expect(run.transferring == [ids[0]])
        run.now += .milliseconds(1)
        run.tick()
        #expect(run.transferring == [ids[0], ids[1]])
        #expect(run.last(ids[1])?.authorization?.revealed == basic("bob", "pw"))
        run.respond(ids[1], 200)
        #expect(run.transferring.count > 1)
        run.serve(password: "pw")
        #expect(run.results.count == 6)
        #expect(run.challenges.count == 1)
    }

    @Test("Rule 22: of an answer whose verdict is slow, three requests are sent")
    func ofAnAnswerWhoseVerdictIsSlowThreeAreSent() throws {
        var (run, ids) = try crowd(6)
        run.answer(ids[0], user: "bob", "wrong")
        for _ in 1...8 {
            run.now += Limits.verdictWait
            run.tick()
        }
        #expect(run.transferring == Array(ids.prefix(3)))
        run.challenge(ids[1])
        #expect(run.asking == [ids[1]] || run.asking == [ids[0]] || run.asking.isEmpty)
        run.serve(password: "right")
        #expect(run.sent == Array(repeating: basic("bob", "wrong"), count: 3))
        #expect(run.asking.count == 1)
    }

    @Test("Rules 17 and 22: an answer for one program is not tried by another")
    func anAnswerForOneProgramIsNotTriedByAnother() throws {
        var (run, ids) = try crowd(3) {
            $0
        } programs: {
            $0 % 2
        }
        run.answer(ids[0], user: "bob", "pw", .none)
        run.now = Limits.verdictWait
        run.tick()
        #expect(run.transferring == [ids[0], ids[2]])
        #expect(run.isWaiting(ids[1]))
    }
}

import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The causes and durations of waits: SEMANTICS rule 20.
@Suite struct WaitingForOthersTests {
    private func silent(_ run: inout TableRun, _ url: String = "http://h/a/page", client: Int = 2) throws -> FetchID {
        let id = try run.fetch(url, client: client) { $0.interaction = .none }
        run.challenge(id)
        return id
    }

    // MARK: Fetches without interaction

    @Test("Rule 20: a fetch with interaction none does not wait for a question")
    func aFetchWithInteractionNoneDoesNotWaitForAQuestion() throws {
        var run = TableRun(isKeyringEnabled: true)
        let asked = try run.fetch()
        run.challenge(asked)
        run.found(asked, [])
        #expect(run.asking == [asked])
        let id = try silent(&run)
        #expect(run.isLookingUp(id))
        run.found(id, [])
        #expect(run.results[id]?.response.status == 401)
        #expect(run.asking == [asked])
    }

    @Test("Rule 20: a fetch with interaction none uses a stored credential beside an open question")
    func aFetchWithInteractionNoneUsesAStoredCredentialBesideAnOpenQuestion() throws {
        var run = TableRun(isKeyringEnabled: true)
        let asked = try run.fetch(subscription: pinning)
        run.challenge(asked)
        run.found(asked, [item("1", exact("bob"), "pw")])
        #expect(run.asking == [asked])
        let id = try silent(&run)
        run.found(id, [item("1", exact("bob"), "pw")])
        #expect(run.last(id)?.authorization?.revealed == basic("bob", "pw"))
        run.respond(id, 200)
        #expect(run.results[id]?.authentication?.source == .keyring)
    }

    @Test("Rule 20: a new question ends the wait of a fetch with interaction none")
    func aNewQuestionEndsTheWaitOfAFetchWithInteractionNone() throws {
        var run = TableRun(isKeyringEnabled: true)
        let first = try run.fetch()
        run.challenge(first)
        let id = try silent(&run)
        #expect(run.isWaiting(id), "the fetch waits for the keyring")
        run.found(first, [])
        #expect(run.asking == [first])
        #expect(run.isLookingUp(id))
        run.found(id, [])
        #expect(run.results[id]?.response.status == 401)
    }

    @Test("Rule 20: a fetch with interaction none waits for an attempt in flight")
    func aFetchWithInteractionNoneWaitsForAVerdict() throws {
        var run = TableRun()
        let first = try run.fetch()
        run.challenge(first)
        run.answer(first, user: "bob", "pw")
        let id = try silent(&run)
        #expect(run.isWaiting(id))
        run.respond(first, 200)
        #expect(run.last(id)?.authorization?.revealed == basic("bob", "pw"))
    }

    /// The fetch that holds the lease of the server waits for the question of a third fetch about the proxy.
    @Test("Rule 20: a fetch with interaction none does not wait for one that waits for a question")
    func aFetchWithInteractionNoneDoesNotWaitForOneThatWaitsForAQuestion() throws {
        var run = TableRun(proxy: wayOut)
        let (one, other) = (try run.fetch(), try run.fetch("http://i/", client: 3))
        run.challenge(one)
        run.answer(one, user: "bob", "pw")
        run.challengeFromProxy(other)
        #expect(run.asking == [other])
        let id = try silent(&run)
        #expect(run.isWaiting(id))
        run.challengeFromProxy(one)
        #expect(run.isWaiting(one))
        #expect(run.results[id]?.response.status == 401)
    }

    // MARK: Notifications

    @Test func aWaitingFetchIsNotifiedOfTheReason() throws {
        var run = TableRun(isKeyringEnabled: true)
        let first = try run.fetch()
        run.challenge(first)
        run.now = .seconds(1)
        let second = try run.fetch(client: 2)
        run.challenge(second)
        #expect(run.waits[second]?.map(\.reason) == [.trial])
        run.now = .seconds(2)
        run.found(first, [])
        #expect(run.waits[second]?.map(\.reason) == [.trial, .question])
        run.now = .seconds(3)
        run.answer(first, user: "bob", "wrong")
        run.now = .seconds(4)
        run.challenge(first)
        #expect(run.waits[second]?.map(\.reason) == [.trial, .question, .trial, .question])
        #expect(run.waits[second]?.map(\.since) == [.zero, .seconds(2), .seconds(3), .seconds(4)])
        #expect(run.waits[second]?.last?.space == run.question(first)?.protectionSpace)
        #expect(run.table.wait(of: second) == run.waits[second]?.last)
        #expect(run.table.wait(of: first) == nil)
    }

    @Test func waitingForAVerdictHasTheReasonTrial() throws {
        var run = TableRun()
        let ids = try (1...2).map { client in
            try run.fetch(client: client) { $0.credential = login("bob", "pw") }
        }
        for id in ids { run.challenge(id) }
        #expect(run.waits[ids[1]]?.map(\.reason) == [.trial])
        #expect(run.waits[ids[0]] == nil)
    }

    // MARK: Time

    private func impatient(_ run: inout TableRun, client: Int = 2) throws -> FetchID {
        let id = try run.fetch(client: client) { $0.timeoutMs = 3000 }
        run.now += .seconds(1)
        run.challenge(id)
        return id
    }

    @Test func timeoutBoundsTheWaitForAQuestionOfAnother() throws {
        var run = TableRun()
        let asked = try run.fetch()
        run.challenge(asked)
        let id = try impatient(&run)
        #expect(run.table.deadline(of: id) == .seconds(3))
        run.now = .seconds(3) - .milliseconds(1)
        run.expire(id)
        #expect(run.isWaiting(id))
        run.now = .seconds(3)
        run.expire(id)
        #expect(run.failures[id]?.kind == .timedOut)
        #expect(run.asking == [asked])
        #expect(run.table.waitingCount == 0)
    }

    @Test func theRestOfTheTimeoutIsForTheNetwork() throws {
        var run = TableRun()
        let asked = try run.fetch()
        run.challenge(asked)
        let id = try impatient(&run)
        run.now += .milliseconds(1500)
        run.answer(asked, user: "bob", "pw")
        run.respond(asked, 200)
        #expect(run.last(id)?.timeout == .milliseconds(500))
    }

    @Test func theTimeoutExcludesTheFetchsOwnQuestion() throws {
        var run = TableRun()
        let id = try impatient(&run)
        #expect(run.asking == [id])
        run.now += .seconds(100)
        #expect(run.table.deadline(of: id) == nil)
        run.answer(id, user: "bob", "pw")
        #expect(run.last(id)?.timeout == .seconds(2))
    }

    @Test func timeoutBoundsTheKeyring() throws {
        var run = TableRun(isKeyringEnabled: true)
        let id = try impatient(&run)
        #expect(run.isLookingUp(id))
        #expect(run.table.deadline(of: id) == .seconds(3))
        run.now = .seconds(3)
        run.expire(id)
        #expect(run.failures[id]?.kind == .timedOut)
    }

    @Test func withoutATimeOnlyTheWaitItselfIsBounded() throws {
        var run = TableRun()
        let asked = try run.fetch()
        run.challenge(asked)
        let id = try run.fetch(client: 2)
        run.challenge(id)
        #expect(run.table.deadline(of: id) == Limits.leaseWait)
        run.now = Limits.leaseWait - .seconds(1)
        run.answer(asked, user: "bob", "pw")
        run.respond(asked, 200)
        #expect(run.last(id)?.timeout == Limits.defaultFetchTimeout)
    }
}

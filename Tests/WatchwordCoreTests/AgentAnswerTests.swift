import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// An agent's answer counts for all programs with the same question (SEMANTICS rule 20).
@Suite struct AgentAnswerTests {
    /// Starts and challenges fetches of `count` programs that do not subscribe to challenges.
    private func crowd(_ count: Int, _ run: inout TableRun, _ offer: String = "Basic realm=\"r\"") throws -> [FetchID] {
        let ids = try (1...count).map { try run.fetch(client: $0, subscription: nil) }
        for id in ids { run.challenge(id, offer) }
        return ids
    }

    @Test("Rule 20: one cancel of an agent ends the fetches of all programs")
    func oneCancelOfAnAgentCancelsForAllPrograms() throws {
        var run = TableRun()
        let ids = try crowd(5, &run)
        #expect(run.asking == [ids[0]])
        run.answer(ids[0], .cancel)
        #expect(ids.allSatisfy { run.failures[$0]?.kind == .challengeCancelled })
        #expect(run.challenges.count == 1)
    }

    @Test("Rule 20: one reject of an agent counts for all programs")
    func oneRejectOfAnAgentCountsForAllPrograms() throws {
        var run = TableRun()
        let ids = try crowd(3, &run, "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", Basic realm=\"r\"")
        run.answer(ids[0], .reject)
        #expect(run.challenges.map(\.challenge.protectionSpace.authenticationMethod) == [.httpDigest, .httpBasic])
        run.answer(ids[0], .reject)
        #expect(run.challenges.count == 2)
        #expect(ids.allSatisfy { run.results[$0]?.response.status == 401 })
    }

    @Test("Rule 20: an agent's cancel does not end a fetch whose own client has yet to be asked")
    func anAgentsCancelDoesNotEndAFetchWhoseOwnClientHasYetToBeAsked() throws {
        var run = TableRun()
        let first = try run.fetch(client: 1, subscription: nil)
        let own = try run.fetch(client: 2)
        let last = try run.fetch(client: 3, subscription: nil)
        for id in [first, own, last] { run.challenge(id) }
        run.answer(first, .cancel)
        #expect(run.failures[last]?.kind == .challengeCancelled)
        #expect(run.asking == [own])
        #expect(run.challenges.last?.respondent == .client)
    }

    @Test func aCancelOfAClientStillCountsForItAlone() throws {
        var run = TableRun()
        let first = try run.fetch(client: 1)
        let other = try run.fetch(client: 2, subscription: nil)
        for id in [first, other] { run.challenge(id) }
        run.answer(first, .cancel)
        #expect(run.failures[other] == nil && run.asking == [other])
    }

    @Test func aCancelIsRememberedForAMoment() {
        var cancels = RecentCancels()
        let challenge = Challenge.about("r")
        #expect(!cancels.covers(challenge, of: "exe:/a", now: .zero))
        cancels.record(challenge, now: .zero)
        #expect(cancels.covers(challenge, of: "exe:/a", now: Limits.cancelMemory - .milliseconds(1)))
        #expect(!cancels.covers(challenge, of: "exe:/a", now: Limits.cancelMemory))
        #expect(!cancels.covers(.about("other"), of: "exe:/a", now: .zero))
    }

    @Test func recentCancelsAreBounded() {
        var cancels = RecentCancels()
        for number in 0...Limits.recentCancels { cancels.record(.about("\(number)"), now: .zero) }
        #expect(!cancels.covers(.about("0"), of: "exe:/a", now: .zero))
        #expect(cancels.covers(.about("\(Limits.recentCancels)"), of: "exe:/a", now: .zero))
    }
}

extension Challenge {
    static func about(_ realm: ExactText) -> Challenge {
        Challenge(
            protectionSpace: here.space(realm: realm, .httpBasic), offers: [], proposedCredential: nil,
            previousFailureCount: 0, persistenceAllowed: [.none], failureResponse: nil, error: nil, url: "http://h/",
            method: "GET")
    }
}

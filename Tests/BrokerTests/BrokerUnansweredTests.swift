import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// Clients and agents that never answer: no stored credential is sent without an answer (SECURITY-RULES X1).
@Suite struct BrokerUnansweredTests {
    private let stage = Stage()

    private func store() {
        let params =
            #"{"protectionSpace":{"protocol":"http","host":"h"},"credential":{"type":"password","user":"bob","password":"pw"}}"#
        #expect(stage.connect(.request).call("credential/store", params)?["result"] != nil)
    }

    /// Returns a client with the mode `everything`, and its open question.
    private func asked(_ more: String = "") throws -> (client: StageClient, question: JSON) {
        store()
        let client = stage.connect(.request)
        _ = client.call("auth/subscribe", #"{"mode":"everything"}"#)
        _ = client.fetch()
        stage.transfers.challenge()
        return (client, try #require(client.hear().of("auth/challenge").first))
    }

    private var silences: [String?] { stage.audit.events.filter { $0.kind == .challengeUnanswered }.map(\.reason) }

    @Test("Rule X1: an error reply does not count as an answer")
    func anErrorReplyIsNotAnAnswer() throws {
        let (client, question) = try asked()
        let id = question["id"]?.integer ?? 0
        let heard = client.say(#"{"jsonrpc":"2.0","id":\#(id),"error":{"code":-32000,"message":"m"}}"#)
        #expect(heard.last?.status == 401)
        #expect(stage.transfers.requests.count == 1)
        #expect(silences == ["failed"])
    }

    @Test func methodNotFoundCountsAsDefault() throws {
        let (client, question) = try asked()
        let id = question["id"]?.integer ?? 0
        _ = client.say(#"{"jsonrpc":"2.0","id":\#(id),"error":{"code":-32601,"message":"m"}}"#)
        #expect(stage.transfers.requests.count == 2)
    }

    @Test func aClientThatUnsubscribesHasNotAnswered() throws {
        let (client, _) = try asked()
        #expect(client.say(#"{"jsonrpc":"2.0","id":9,"method":"auth/unsubscribe"}"#).contains { $0.status == 401 })
        #expect(stage.transfers.requests.count == 1)
        #expect(silences == ["unregistered"])
    }

    @Test("Rule X1: a client that can no longer answer has not answered")
    func aClientThatCanNoLongerAnswerHasNotAnswered() throws {
        let (client, _) = try asked()
        stage.broker.inputEnded(client.id)
        #expect(client.hear().last?.status == 401)
        #expect(stage.transfers.requests.count == 1)
        #expect(silences == ["disconnected"])
        #expect(!stage.audit.kinds.contains(.credentialUsed))
    }

    @Test func aClientThatShutsDownBeforeTheChallengeHasNotAnswered() throws {
        store()
        let client = stage.connect(.request)
        _ = client.call("auth/subscribe", #"{"mode":"everything"}"#)
        _ = client.fetch()
        stage.broker.inputEnded(client.id)
        stage.transfers.challenge()
        #expect(client.hear().map(\.status) == [401])
        #expect(stage.transfers.requests.count == 1)
    }

    @Test("Rule X1: a passed deadline does not count as an answer")
    func aPassedDeadlineIsNotAnAnswer() async throws {
        let (client, _) = try asked()
        await stage.settle { stage.clock.sleeperCount > 0 }
        stage.clock.advance(by: Limits.challengeDeadline)
        await stage.settle { !stage.broker.hasFetches }
        #expect(client.hear().last?.status == 401)
        #expect(stage.transfers.requests.count == 1)
        #expect(silences == ["deadline"])
    }

    @Test func fetchesOfADisconnectedClientRaiseNoFurtherQuestions() throws {
        let desk = stage.connect(nil)
        _ = desk.call("agent/register", #"{"name":"desk"}"#)
        let (client, _) = try asked()
        _ = client.fetch(id: 2)
        stage.transfers.challenge()
        client.leave()
        #expect(desk.hear().isEmpty)
        #expect(stage.transfers.requests.count == 2)
        #expect(silences == ["cancelled"])
    }

    @Test func shutdownRaisesNoFurtherQuestions() async throws {
        let (client, _) = try asked()
        _ = client.fetch(id: 2)
        stage.transfers.challenge()
        let other = stage.connect(.request)
        _ = other.fetch()
        stage.transfers.challenge()
        let (requests, broker) = (stage.transfers.requests.count, stage.broker)
        let ending = Task { await broker.shutDown(reason: "test", grace: .zero) }
        await stage.settle { !stage.broker.hasFetches }
        await ending.value
        #expect(stage.transfers.requests.count == requests)
        #expect(other.hear().of("auth/challenge").isEmpty)
    }
}

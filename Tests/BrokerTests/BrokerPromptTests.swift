import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// What a person says at an agent, and for whom it counts.
@Suite struct BrokerPromptTests {
    private let stage = Stage()

    private func agent() -> StageClient {
        let client = stage.connect(nil)
        _ = client.call("agent/register", #"{"name":"desk"}"#)
        return client
    }

    private func ask(_ url: String = "http://h/", more: String = "") -> StageClient {
        let client = stage.connect(nil)
        _ = client.fetch(url, more: more)
        stage.transfers.challenge()
        return client
    }

    private func kinds(_ clients: [StageClient]) -> [String?] { clients.flatMap { $0.hear() }.map(\.kind) }

    @Test func rule20OneCancelSettlesFivePrograms() {
        let desk = agent()
        let clients = (0..<5).map { _ in ask() }
        let asked = desk.hear().of("auth/challenge")
        #expect(asked.count == 1)
        _ = desk.answer(asked[0], #"{"action":"cancel"}"#)
        #expect(kinds(clients) == Array(repeating: "challengeCancelled", count: 5))
        #expect(desk.hear().of("auth/challenge").isEmpty)
    }

    @Test func rule20ItSettlesThoseThatShareNothingToo() {
        let desk = agent()
        let clients = (0..<3).map { _ in ask(more: #","auth":{"useStorage":false}"#) }
        let asked = desk.hear().of("auth/challenge")
        #expect(asked.count == 3)
        let heard = desk.answer(asked[1], #"{"action":"cancel"}"#)
        #expect(heard.of("$/cancelRequest").count == 2)
        #expect(kinds(clients) == Array(repeating: "challengeCancelled", count: 3))
        #expect(!stage.broker.hasQuestions)
    }

    @Test func rule20ARejectionSettlesThoseThatShareNothingToo() {
        let desk = agent()
        let clients = (0..<3).map { _ in ask(more: #","auth":{"useStorage":false}"#) }
        let asked = desk.hear().of("auth/challenge")
        let heard = desk.answer(asked[1], #"{"action":"reject"}"#)
        #expect(heard.of("$/cancelRequest").count == 2)
        #expect(clients.flatMap { $0.hear() }.map(\.status) == [401, 401, 401])
        #expect(!stage.broker.hasQuestions)
        // It is not remembered, and not counted.
        _ = ask()
        #expect(desk.hear().of("auth/challenge").count == 1)
    }

    @Test func aCancelIsRememberedForTenSeconds() {
        let desk = agent()
        let first = ask()
        _ = desk.answer(desk.hear().of("auth/challenge")[0], #"{"action":"cancel"}"#)
        #expect(kinds([first]) == ["challengeCancelled"])
        #expect(kinds([ask()]) == ["challengeCancelled"])
        #expect(desk.hear().isEmpty)
        #expect(stage.audit.events.last?.reason == "challengeCancelled")
        // Another question is another matter.
        _ = ask("http://other/")
        #expect(desk.hear().of("auth/challenge").count == 1)
        // So is a client that asks its own user.
        let own = stage.connect(.request)
        _ = own.fetch()
        stage.transfers.challenge()
        #expect(own.hear().of("auth/challenge").count == 1)
        own.leave()
        stage.clock.advance(by: Limits.cancelMemory)
        _ = ask()
        #expect(desk.hear().of("auth/challenge").count == 1)
    }

    /// Cancels every question of a program as fast as it comes, for that long; how often it was asked.
    private func questions(of desk: StageClient, during seconds: Int, _ url: (Int) -> String) -> Int {
        var asked = 0
        for second in 0..<seconds {
            let client = stage.connect(nil, pid: Int32(second + 100))
            _ = client.fetch(url(second))
            stage.transfers.challenge("realm\(second)")
            if let question = desk.hear().of("auth/challenge").first {
                asked += 1
                _ = desk.answer(question, #"{"action":"cancel"}"#)
            }
            #expect(["challengeCancelled", "busy"].contains(client.hear().last?.kind))
            client.leave()
            stage.clock.advance(by: .seconds(1))
        }
        return asked
    }

    @Test func aMalformedReplyOfAnAgentIsNobodysCancel() {
        let desk = agent()
        let heir = agent()
        let clients = (0..<2).map { _ in ask(more: #","auth":{"useStorage":false}"#) }
        let asked = desk.hear().of("auth/challenge")
        _ = desk.say(#"{"jsonrpc":"2.0","id":\#(asked[0]["id"]?.integer ?? 0)}"#)
        #expect(kinds(clients).isEmpty)
        let moved = heir.hear().of("auth/challenge")
        #expect(moved.map { $0["params"]?["challengeId"] } == [asked[0]["params"]?["challengeId"]])
        // Nothing of it is remembered.
        _ = ask()
        #expect(desk.hear().of("auth/challenge").count == 1)
    }

    @Test func x5AProgramWhoseQuestionsAreCancelledHasToWaitLongerAndLonger() {
        let desk = agent()
        #expect(questions(of: desk, during: 120) { _ in "http://h/" } == 4)
        let client = ask()
        let text = client.hear().last?["error"]?["message"]?.string
        #expect(text == "the last questions of this program were cancelled; it may ask about http://h again in 31 s")
        #expect(stage.transfers.requests.allSatisfy { $0.authorization == nil })
    }

    @Test func x5SoHasOneThatAsksForOneSiteAfterTheOther() {
        let desk = agent()
        #expect(questions(of: desk, during: 60) { "http://h\($0)/" } <= 9)
    }

    @Test func x5AnAnswerEndsIt() {
        let desk = agent()
        _ = ask()
        _ = desk.answer(desk.hear().of("auth/challenge")[0], #"{"action":"cancel"}"#)
        for _ in 0..<3 {
            stage.clock.advance(by: .seconds(10))
            _ = ask()
            let asked = desk.hear().of("auth/challenge")
            #expect(asked.count == 1)
            if let question = asked.first { _ = desk.answer(question, bobsAnswer) }
            stage.transfers.challenge()
            guard let again = desk.hear().of("auth/challenge").first else { return }
            _ = desk.answer(again, #"{"action":"cancel"}"#)
        }
    }
}

import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// A person's answers at an agent, and the programs that they apply to.
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

    @Test("Rule 20: one cancel of an agent ends the fetches of five programs")
    func oneCancelOfAnAgentEndsTheFetchesOfFivePrograms() {
        let desk = agent()
        let clients = (0..<5).map { _ in ask() }
        let asked = desk.hear().of("auth/challenge")
        #expect(asked.count == 1)
        _ = desk.answer(asked[0], #"{"action":"cancel"}"#)
        #expect(kinds(clients) == Array(repeating: "challengeCancelled", count: 5))
        #expect(desk.hear().of("auth/challenge").isEmpty)
    }

    @Test("Rule 20: one cancel of an agent ends the fetches of programs that share no storage")
    func oneCancelOfAnAgentEndsTheFetchesOfProgramsThatShareNoStorage() {
        let desk = agent()
        let clients = (0..<3).map { _ in ask(more: #","auth":{"useStorage":false}"#) }
        let asked = desk.hear().of("auth/challenge")
        #expect(asked.count == 3)
        let heard = desk.answer(asked[1], #"{"action":"cancel"}"#)
        #expect(heard.of("$/cancelRequest").count == 2)
        #expect(kinds(clients) == Array(repeating: "challengeCancelled", count: 3))
        #expect(!stage.broker.hasQuestions)
    }

    @Test("Rule 20: one reject of an agent counts for programs that share no storage")
    func oneRejectOfAnAgentCountsForProgramsThatShareNoStorage() {
        let desk = agent()
        let clients = (0..<3).map { _ in ask(more: #","auth":{"useStorage":false}"#) }
        let asked = desk.hear().of("auth/challenge")
        let heard = desk.answer(asked[1], #"{"action":"reject"}"#)
        #expect(heard.of("$/cancelRequest").count == 2)
        #expect(clients.flatMap { $0.hear() }.map(\.status) == [401, 401, 401])
        #expect(!stage.broker.hasQuestions)
        // The reject is neither remembered nor counted.
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
        // The cancel does not apply to another question.
        _ = ask("http://other/")
        #expect(desk.hear().of("auth/challenge").count == 1)
        // A client that answers challenges itself is not affected either.
        let own = stage.connect(.request)
        _ = own.fetch()
        stage.transfers.challenge()
        #expect(own.hear().of("auth/challenge").count == 1)
        own.leave()
        stage.clock.advance(by: Limits.cancelMemory)
        _ = ask()
        #expect(desk.hear().of("auth/challenge").count == 1)
    }

    /// Cancels every question of a program at once for `seconds`; returns the number of questions.
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

    @Test func aMalformedReplyOfAnAgentIsNotACancel() {
        let desk = agent()
        let heir = agent()
        let clients = (0..<2).map { _ in ask(more: #","auth":{"useStorage":false}"#) }
        let asked = desk.hear().of("auth/challenge")
        _ = desk.say(#"{"jsonrpc":"2.0","id":\#(asked[0]["id"]?.integer ?? 0)}"#)
        #expect(kinds(clients).isEmpty)
        let moved = heir.hear().of("auth/challenge")
        #expect(moved.map { $0["params"]?["challengeId"] } == [asked[0]["params"]?["challengeId"]])
        // The malformed reply is not remembered as a cancel.
        _ = ask()
        #expect(desk.hear().of("auth/challenge").count == 1)
    }

    @Test("Rule X5: the delay grows after each cancelled question")
    func theDelayGrowsAfterEachCancelledQuestion() {
        let desk = agent()
        #expect(questions(of: desk, during: 120) { _ in "http://h/" } == 4)
        let client = ask()
        let text = client.hear().last?["error"]?["message"]?.string
        #expect(
            text
                == "earlier prompts of this program were cancelled or in vain; it may cause another one for http://h in 31 s"
        )
        #expect(stage.transfers.requests.allSatisfy { $0.authorization == nil })
    }

    @Test("Rule X5: the delay grows after each login that the server answers without a challenge")
    func theDelayGrowsAfterEachLoginInVain() throws {
        let desk = agent()
        /// Makes a fetch; returns whether a person was asked.
        func isAsked(_ status: Int = 401, pid: Int) -> Bool {
            let client = stage.connect(nil, pid: Int32(pid))
            _ = client.fetch()
            stage.transfers.challenge()
            guard let question = desk.hear().of("auth/challenge").first else {
                #expect(client.hear().last?.kind == "busy")
                return false
            }
            _ = desk.answer(question, bobsAnswer.replacing(#""pw""#, with: #""pw","persistence":"none""#))
            stage.transfers.respond(status)
            #expect(client.hear().last?.status == status)
            return true
        }
        var times: [Int] = []
        for second in 0..<80 {
            if isAsked(pid: second + 100) { times.append(second) }
            stage.clock.advance(by: .seconds(1))
        }
        #expect(times == [0, 10, 30, 70])
        // An accepted login ends the delay.
        stage.clock.advance(by: .seconds(80))
        #expect(isAsked(200, pid: 90) && isAsked(pid: 91))
        stage.clock.advance(by: .seconds(10))
        #expect(isAsked(pid: 92))
    }

    @Test("Rule X5: a program that causes questions for many sites is delayed")
    func aProgramThatAsksForOneSiteAfterTheOtherIsDelayed() {
        let desk = agent()
        #expect(questions(of: desk, during: 60) { "http://h\($0)/" } <= 9)
    }

    @Test("Rule X5: an answer ends the delay")
    func anAnswerEndsTheDelay() throws {
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
            let again = try #require(desk.hear().of("auth/challenge").first)
            _ = desk.answer(again, #"{"action":"cancel"}"#)
        }
    }
}

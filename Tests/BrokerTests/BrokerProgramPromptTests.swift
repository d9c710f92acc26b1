import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// Prompts of programs that log in by themselves (`prompt/ask`), which agents show.
@Suite struct BrokerProgramPromptTests {
    private let stage = Stage()

    private func agent(_ more: String = "", pid: Int32 = 1) -> StageClient {
        let client = stage.connect(nil, pid: pid, subject: Subject(.exe, "/usr/bin/desk"))
        _ = client.call("agent/register", #"{"name":"desk","asksPrompt":true\#(more)}"#)
        return client
    }

    /// Calls `prompt/ask` on a new connection.
    private func ask(
        _ kind: String = "secret", program: String = "ssh", text: String = "Password: ", pid: Int32 = 4711
    ) -> StageClient {
        let client = stage.connect(nil, pid: pid)
        client.ask(kind, program: program, text: text)
        return client
    }

    private func reply(to client: StageClient) -> JSON? { client.hear().replies.last }

    @Test func aPromptPassesToAnAgentAndItsAnswerBack() throws {
        let (desk, other) = (agent(), agent(pid: 2))
        let client = ask("secret", text: #"Passphrase\nfor key: "#)
        let asked = try #require(desk.prompts.first)
        let params = try #require(asked["params"])
        #expect(params["text"]?.string == "Passphrase\nfor key: " && params["kind"]?.string == "secret")
        #expect(params["program"]?.string == "ssh" && params["deadlineMs"]?.integer == 120_000)
        #expect(params["requester"]?["subject"]?.string == "exe:/usr/bin/tool")
        #expect(params["requester"]?["pid"]?.integer == 4711)
        _ = desk.answer(asked, #"{"action":"answer","value":"open sesame"}"#)
        #expect(reply(to: client)?["result"] == ["value": "open sesame"])
        #expect(other.hear().isEmpty && desk.hear().isEmpty)
        #expect(stage.audit.kinds.suffix(2) == [.promptAsked, .promptAnswered])
        let event = try #require(stage.audit.events.last)
        #expect(event.program == "ssh" && event.action == "answer" && event.client?.pid == 4711)
        #expect(event.agent?.pid == 1 && event.reason == nil)
        #expect(!stage.broker.hasSessionData && stage.transfers.requests.isEmpty)
    }

    @Test(
        arguments: [
            ("confirmation", #"{"action":"allow"}"#, ["allow": true]),
            ("confirmation", #"{"action":"cancel"}"#, ["allow": false]),
            ("information", #"{"action":"cancel"}"#, [:]),
            ("text", #"{"action":"answer","value":""}"#, ["value": ""]),
        ] as [(String, String, JSON)])
    func theKindDecidesTheResult(kind: String, answer: String, result: JSON) throws {
        let desk = agent()
        let client = ask(kind)
        _ = desk.answer(try #require(desk.prompts.first), answer)
        #expect(reply(to: client)?["result"] == result)
    }

    @Test func aCancelledPromptIsAnError() throws {
        let desk = agent()
        let client = ask()
        _ = desk.answer(try #require(desk.prompts.first), #"{"action":"cancel"}"#)
        #expect(reply(to: client)?.kind == "challengeCancelled")
        #expect(stage.audit.events.last?.action == "cancel")
    }

    @Test(arguments: [
        #"{"action":"answer"}"#, #"{"action":"answer","value":"two\nlines"}"#, #"{"action":"answer","value":"\u0000"}"#,
        #"{"action":"answer","value":"x","stopAsking":true}"#, #"{"action":"allow"}"#, #"{"allow":"once"}"#, "{}", "[]",
        #"{"action":"cancel","stopasking":true}"#,
    ])
    func anInvalidAnswerIsNone(answer: String) throws {
        let (desk, heir) = (agent(), agent(pid: 2))
        let client = ask()
        let asked = try #require(desk.prompts.first)
        _ = desk.answer(asked, answer)
        #expect(client.hear().isEmpty)
        let moved = try #require(heir.prompts.first)
        #expect(moved["params"]?["promptId"] == asked["params"]?["promptId"])
        _ = heir.say(
            #"{"jsonrpc":"2.0","id":\#(moved["id"]?.integer ?? 0),"error":{"code":-32601,"message":"no"}}"#)
        #expect(reply(to: client)?.kind == "noAgent")
    }

    @Test func onlyAnotherProcessThatSupportsPromptsIsAsked() {
        let plain = stage.connect(nil, pid: 5)
        _ = plain.call("agent/register", #"{"name":"old"}"#)
        let own = agent(pid: 4711)
        #expect(reply(to: ask())?.kind == "noAgent")
        #expect(plain.hear().isEmpty && own.hear().isEmpty)
    }

    @Test func aSilentAgentIsReplacedByTheNext() throws {
        let (desk, heir) = (agent(), agent(pid: 2))
        let client = ask()
        let asked = try #require(desk.prompts.first)
        stage.clock.advance(by: Limits.challengeDeadline)
        #expect(desk.hear().of("$/cancelRequest").map { $0["params"]?["id"] } == [asked["id"]])
        #expect(heir.prompts.count == 1 && client.hear().isEmpty)
        stage.clock.advance(by: Limits.challengeDeadline)
        #expect(reply(to: client)?.kind == "challengeTimedOut")
        #expect(stage.audit.events.last?.reason == "deadline")
    }

    @Test func aPromptEndsWithItsClient() throws {
        let desk = agent()
        let client = ask()
        let asked = try #require(desk.prompts.first)
        client.leave()
        #expect(desk.hear().of("$/cancelRequest").map { $0["params"]?["id"] } == [asked["id"]])
        #expect(stage.broker.hasNoProgramPrompts && stage.audit.events.last?.reason == "cancelled")
        #expect(desk.answer(asked, #"{"action":"answer","value":"late"}"#).isEmpty)
    }

    @Test func aClientCancelsItsPrompt() {
        let desk = agent()
        let client = ask()
        _ = desk.hear()
        _ = client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"ask"}}"#)
        #expect(desk.hear().of("$/cancelRequest").count == 1 && stage.broker.hasNoProgramPrompts)
    }

    @Test(arguments: [true, false])
    func thePromptsOfAnAgentThatLeavesMoveOn(disconnects: Bool) throws {
        let (desk, heir) = (agent(), agent(pid: 2))
        let client = ask()
        if disconnects { desk.leave() } else { _ = desk.call("agent/unregister") }
        _ = heir.answer(try #require(heir.prompts.first), #"{"action":"answer","value":"pw"}"#)
        #expect(reply(to: client)?["result"]?["value"]?.string == "pw")
    }

    @Test("Rule X5: a program whose prompt was cancelled has to wait, and another caller of it does not")
    func aProgramWhosePromptWasCancelledHasToWait() throws {
        let desk = agent()
        _ = ask()
        _ = desk.answer(try #require(desk.prompts.first), #"{"action":"cancel"}"#)
        let text = reply(to: ask())?["error"]?["message"]?.string
        #expect(text == "earlier prompts of this program were cancelled; it may cause another one in 11 s")
        #expect(desk.hear().isEmpty)
        _ = ask(program: "sudo")
        #expect(desk.prompts.count == 1)
        stage.clock.advance(by: Limits.promptDelay)
        _ = ask()
        #expect(desk.prompts.count == 1)
    }

    @Test("Rule X5: a program that prompts under many names is delayed")
    func aProgramThatPromptsUnderManyNamesIsDelayed() {
        let desk = agent()
        var count = 0
        for number in 0..<60 {
            let client = ask("confirmation", program: "p\(number)")
            if let asked = desk.prompts.first {
                count += 1
                _ = desk.answer(asked, #"{"action":"cancel"}"#)
            }
            client.leave()
            _ = desk.hear()
            stage.clock.advance(by: .seconds(1))
        }
        #expect(count <= 9)
    }

    @Test func closingAnInformationIsNoRefusal() throws {
        let desk = agent()
        for _ in 0..<3 {
            _ = ask("information")
            _ = desk.answer(try #require(desk.prompts.first), #"{"action":"cancel"}"#)
        }
    }

    @Test func aPersonStopsThePromptsOfAProgram() throws {
        let desk = agent()
        let clients = (0..<3).map { _ in ask() }
        let asked = desk.prompts
        let heard = desk.answer(asked[0], #"{"action":"cancel","stopAsking":true}"#)
        #expect(heard.of("$/cancelRequest").count == 2)
        #expect(clients.map { reply(to: $0)?.kind } == ["challengeCancelled", "denied", "denied"])
        #expect(reply(to: ask(program: "sudo"))?.kind == "denied")
        let stopped = desk.call("prompt/list")?["result"]?["stopped"]?.elements
        #expect(stopped?.map { $0["unasked"]?.integer } == [3])
        _ = desk.call("prompt/resume", #"{"all":true}"#)
        _ = ask()
        #expect(desk.prompts.count == 1)
    }

    @Test func promptsAndChallengesShareTheLimitOfAnAgent() throws {
        let desk = agent(#","maxPending":1"#)
        _ = ask()
        let first = try #require(desk.prompts.first)
        _ = ask(program: "sudo")
        let fetch = stage.connect(nil)
        _ = fetch.fetch()
        stage.transfers.challenge()
        #expect(desk.hear().isEmpty)
        let second = desk.answer(first, #"{"action":"answer","value":"1"}"#)
        #expect(second.map { $0["params"]?["program"]?.string } == ["sudo"])
        let third = desk.answer(try #require(second.first), #"{"action":"answer","value":"2"}"#)
        #expect(third.map(\.method) == ["auth/challenge"])
        _ = ask()
        #expect(desk.hear().isEmpty)
        let fourth = desk.answer(try #require(third.first), #"{"action":"continue"}"#)
        #expect(fourth.map(\.method) == ["auth/prompt"])
    }

    @Test func aQueuedPromptOfAProgramThatHasToWaitIsNotShown() throws {
        let desk = agent(#","maxPending":1"#)
        _ = ask()
        let second = ask()
        let heard = desk.answer(try #require(desk.prompts.first), #"{"action":"cancel"}"#)
        #expect(heard.isEmpty && reply(to: second)?.kind == "busy" && stage.broker.hasNoProgramPrompts)
    }

    @Test func aQueuedPromptMovesWithItsAgent() throws {
        let (desk, heir) = (agent(#","maxPending":1"#), agent(pid: 2))
        _ = ask()
        let second = ask(program: "sudo")
        #expect(desk.prompts.count == 1)
        desk.leave()
        let moved = heir.prompts
        #expect(moved.map { $0["params"]?["program"]?.string } == ["ssh", "sudo"])
        _ = heir.answer(moved[1], #"{"action":"answer","value":"pw"}"#)
        #expect(reply(to: second)?["result"]?["value"]?.string == "pw")
    }

    @Test func oneConnectionHasALimitedNumberOfOpenPrompts() {
        let desk = agent()
        let client = stage.connect(nil)
        for number in 0..<Limits.openChallenges { client.ask("secret", id: "\(number)") }
        client.ask("secret", id: "one too many")
        #expect(reply(to: client)?.kind == "busy")
        #expect(desk.prompts.count == Limits.openChallenges)
    }

    @Test func anExitingBrokerEndsItsPrompts() async {
        _ = agent()
        let client = ask()
        await stage.broker.shutDown(reason: "stop", grace: .zero)
        #expect(reply(to: client)?.kind == "shuttingDown")
    }
}

extension Broker {
    nonisolated fileprivate var hasNoProgramPrompts: Bool { assumeIsolated { $0.desks.programPrompts.open.isEmpty } }

    nonisolated fileprivate func send(_ line: String, from connection: ConnectionID) {
        Array((line + "\n").utf8).withUnsafeBytes { received($0, from: connection) }
    }
}

extension StageClient {
    /// The prompts that the agent has received since the last call.
    fileprivate var prompts: [JSON] { hear().of("auth/prompt") }

    fileprivate func ask(_ kind: String, program: String = "ssh", text: String = "Password: ", id: String = "ask") {
        let params = #"{"text":"\#(text)","kind":"\#(kind)","program":"\#(program)"}"#
        stage.broker.send(#"{"jsonrpc":"2.0","id":"\#(id)","method":"prompt/ask","params":\#(params)}"#, from: self.id)
    }
}

import JSONText
import Testing
import WatchwordProtocol

struct PromptMessagesTests {
    @Test(arguments: ProgramPrompt.Kind.allCases)
    func aPromptIsReadAsItWasWritten(kind: ProgramPrompt.Kind) throws {
        let ask = PromptAsk(ProgramPrompt(text: "Password\nof bob: ", kind: kind, program: "sudo"))
        #expect(try PromptAsk(JSON.parse(ask.json.text)) == ask)
        #expect(try PromptAsk(["text": "", "kind": .string(kind.rawValue)]).prompt.program == nil)
    }

    @Test func aPromptNeedsATextOfLimitedSizeAndAKind() {
        #expect(problem { try PromptAsk(["kind": "secret"]) } == "params.text is missing")
        #expect(problem { try PromptAsk(["text": "x"]) } == "params.kind is missing")
        let kinds = problem { try PromptAsk(["text": "x", "kind": "password"]) }
        #expect(kinds == "params.kind must be one of: secret, text, confirmation, information")
        let (limit, most) = (Limits.promptTextBytes, String(repeating: "x", count: Limits.promptTextBytes))
        #expect(problem { try PromptAsk(["text": .string(most), "kind": "text"]) } == nil)
        #expect(
            problem { try PromptAsk(["text": .string(most + "x"), "kind": "text"]) }
                == "params.text must be a string of at most \(limit) bytes")
    }

    @Test func theNameOfTheProgramIsMadeSafe() throws {
        let name = "s\u{1B}sh" + String(repeating: "x", count: 100)
        let ask = try PromptAsk(["text": "x", "kind": "secret", "program": .string(name)])
        #expect(ask.prompt.program?.hasPrefix("s\u{FFFD}sh") == true && ask.prompt.program?.count == 81)
    }

    @Test(
        arguments: [
            (.secret, #"{"action":"answer","value":"pw"}"#, #"{"value":"pw"}"#),
            (.confirmation, #"{"action":"allow"}"#, #"{"allow":true}"#),
            (.confirmation, #"{"action":"cancel","stopAsking":true}"#, #"{"allow":false}"#),
            (.information, #"{"action":"cancel"}"#, "{}"), (.secret, #"{"action":"cancel"}"#, nil),
        ] as [(ProgramPrompt.Kind, String, String?)])
    func aReplyBecomesTheResult(kind: ProgramPrompt.Kind, reply: String, result: String?) throws {
        let answer = try PromptReply(JSON.parse(reply), to: kind).answer(to: kind)
        #expect(answer.map { PromptAsk.json($0).text } == result)
    }

    @Test(
        arguments: [
            (
                .information, #"{"action":"answer","value":"x"}"#,
                "answer.action must be one for a prompt of the kind information"
            ),
            (.text, #"{"action":"allow"}"#, "answer.action must be one for a prompt of the kind text"),
            (.secret, #"{"action":"answer"}"#, "answer.value is missing"),
            (.secret, #"{"action":"answer","value":"a\rb"}"#, "answer.value must be one line"),
            (.secret, #"{"action":"yes"}"#, "answer.action must be one of: answer, allow, cancel"),
        ] as [(ProgramPrompt.Kind, String, String)])
    func anInvalidReplyIsRefused(kind: ProgramPrompt.Kind, reply: String, reason: String) {
        #expect(problem { try PromptReply(JSON.parse(reply), to: kind) } == reason)
    }

    @Test func theParametersForAnAgentNameTheClient() {
        let params = AuthPromptParams(
            promptID: "p", prompt: ProgramPrompt(text: "t", kind: .secret, program: nil),
            requester: Requester(name: "askpass", pid: 7, subject: Subject(.exe, "/usr/bin/watchword")), deadlineMs: 5)
        #expect(
            params.json.text
                == #"{"promptId":"p","text":"t","kind":"secret","requester":{"name":"askpass","pid":7,"subject":"exe:/usr/bin/watchword"},"deadlineMs":5}"#
        )
    }
}

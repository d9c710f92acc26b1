import JSONText
import Testing
import WatchwordProtocol

struct AuthMessagesTests {
    @Test func aChallengeIsWrittenAsTheProtocolSays() {
        let params = AuthChallengeParams(
            challengeID: "9rT0", fetchID: "f17", challenge: ChallengeTests.challenge,
            requester: Requester(name: "mytool", pid: 4711, subject: Subject(.exe, "/usr/bin/mytool")),
            deadlineMs: 120_000)
        #expect(
            params.json.members?.map(\.name) == [
                "challengeId", "fetchId", "protectionSpace", "offers", "proposedCredential", "previousFailureCount",
                "failureResponse", "error", "accepts", "persistenceAllowed", "url", "method", "requester", "deadlineMs",
            ])
        #expect(params.json["challengeId"] == "9rT0")
        #expect(params.json["fetchId"] == "f17")
        #expect(params.json["requester"]?.text == #"{"name":"mytool","pid":4711,"subject":"exe:/usr/bin/mytool"}"#)
        #expect(params.json["deadlineMs"] == 120_000)
    }

    @Test func aRequesterMayHaveNoName() {
        #expect(
            Requester(name: nil, pid: 1, subject: .unknown).json.text == #"{"name":null,"pid":1,"subject":"unknown"}"#)
    }

    @Test func anAnswerIsRead() throws {
        let params = try AuthRespond(JSON.parse(#"{"challengeId":"c","answer":{"action":"cancel"}}"#))
        #expect(params.challengeID == "c")
        #expect(params.answer == AgentAnswer(.cancel))
        #expect(params.problem == nil)
    }

    @Test(arguments: [
        (#"{"action":"cancle"}"#, "answer.action must be one of: credential, continue, cancel, default, reject"),
        (#"{"action":"cancel","x":1}"#, #"answer has the unknown member "x"; it takes action, stopAsking"#),
        ("[]", "answer must be an object, not a list"),
    ])
    func aMalformedAnswerIsReported(answer: String, problem: String) throws {
        let params = try AuthRespond(JSON.parse(#"{"challengeId":"c","answer":\#(answer)}"#))
        #expect(params.challengeID == "c")
        #expect(params.answer == nil)
        #expect(params.problem == problem)
    }

    @Test(arguments: [
        (#"{"answer":{"action":"cancel"}}"#, "params.challengeId is missing"),
        (#"{"challengeId":7,"answer":{"action":"cancel"}}"#, "params.challengeId must be a string"),
        (#"{"challengeId":"c"}"#, "params.answer is missing"),
        (#"{"challengeId":"c","answer":null}"#, "params.answer is missing"),
    ])
    func aResponseWithoutChallengeOrAnswerIsRefused(text: String, reason: String) {
        #expect(problem { try AuthRespond(JSON.parse(text)) } == reason)
    }

    @Test(arguments: [
        (AuthRespondResult.accepted, #"{"accepted":true}"#), (.gone, #"{"accepted":false,"reason":"gone"}"#),
        (.answered, #"{"accepted":false,"reason":"answered"}"#),
        (.invalid(problem: "no"), #"{"accepted":false,"reason":"invalid","detail":"no"}"#),
    ])
    func theResultOfAnAnswerIsWritten(result: AuthRespondResult, text: String) {
        #expect(AuthRespond.json(result).text == text)
    }
}

import JSONText
import Testing
import WatchwordProtocol

struct ChallengeAnswerTests {
    private func read(_ text: String) throws -> ChallengeAnswer { try ChallengeAnswer(JSON.parse(text)) }

    private static let password = Array("pw".utf8).withUnsafeBytes { Secret(copying: $0) }

    private static let answers: [(answer: ChallengeAnswer, text: String)] = [
        (
            .credential(.login(LoginCredential(user: "bob", password: password, persistence: .forSession))),
            #"{"action":"credential","credential":{"type":"password","user":"bob","password":"pw","persistence":"forSession"}}"#
        ),
        (.credential(.proposed), #"{"action":"credential","credential":{"type":"proposed"}}"#),
        (.proceed, #"{"action":"continue"}"#), (.cancel, #"{"action":"cancel"}"#),
        (.useDefault, #"{"action":"default"}"#), (.reject, #"{"action":"reject"}"#),
    ]

    @Test(arguments: answers.indices)
    func isWrittenAsTheProtocolSaysAndReadBack(index: Int) throws {
        let (answer, text) = Self.answers[index]
        #expect(answer.json.text == text)
        #expect(try read(text) == answer)
    }

    @Test(
        "Rule P15: an unknown member makes an answer invalid", arguments: answers.indices,
        ["Action", "credentials", "persistence", "reason", "", "id"])
    func anUnknownMemberMakesAnAnswerInvalid(index: Int, name: String) throws {
        for value in [JSON.null, "x"] {
            let reason = problem { try ChallengeAnswer(Self.answers[index].answer.json.adding([name: value])) }
            #expect(reason?.hasPrefix("answer has the unknown member \"\(name)\"") == true)
        }
    }

    @Test(arguments: ["continue", "cancel", "default", "reject"])
    func onlyACredentialCarriesOne(action: String) {
        let json: JSON = ["action": .string(action), "credential": ["type": "proposed"]]
        #expect(problem { try ChallengeAnswer(json) }?.contains("unknown member \"credential\"") == true)
    }

    @Test(arguments: [
        ("{}", "answer.action is missing"), (#"{"action":null}"#, "answer.action is missing"),
        (#"{"action":1}"#, "answer.action must be a string"),
        (#"{"action":"Cancel"}"#, "answer.action must be one of: credential, continue, cancel, default, reject"),
        (#"{"action":""}"#, "answer.action must be one of: credential, continue, cancel, default, reject"),
        (#"{"action":"credential"}"#, "answer.credential is missing"),
        (#"{"action":"credential","credential":null}"#, "answer.credential is missing"),
        (#"{"action":"credential","credential":"bob"}"#, "answer.credential must be an object, not a string"),
        (#"{"action":"credential","credential":{}}"#, "answer.credential.type is missing"),
        (
            #"{"action":"credential","credential":{"type":"password","user":"b"}}"#,
            "answer.credential.password is missing"
        ),
        ("[]", "answer must be an object, not a list"), ("null", "answer must be an object, not null"),
        (#""cancel""#, "answer must be an object, not a string"),
    ])
    func isRefused(text: String, reason: String) {
        #expect(problem { try read(text) } == reason)
    }

    @Test func aMissingAnswerIsReported() {
        #expect(problem { try ChallengeAnswer(nil) } == "answer.action is missing")
    }
}

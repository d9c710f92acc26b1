import JSONText
import Testing
import WatchwordProtocol

struct ChallengeTests {
    static let challenge = Challenge(
        protectionSpace: ProtectionSpace(
            scheme: "http", host: "intranet.example", port: 80, realm: "Staff", authenticationMethod: .httpBasic),
        offers: [
            Offer(
                scheme: "Digest", realm: "Staff", params: ["qop": "auth", "algorithm": "SHA-256"],
                raw: "Digest realm=…",
                supported: true),
            Offer(scheme: "Hawk", realm: nil, params: [:], raw: "Hawk", supported: false),
        ],
        proposedCredential: nil, previousFailureCount: 0, persistenceAllowed: [.none, .forSession],
        failureResponse: nil, error: nil,
        url: "http://intranet.example/report", method: "GET")

    @Test func membersStandAsTheProtocolSays() {
        #expect(
            Self.challenge.json.members?.map(\.name) == [
                "protectionSpace", "offers", "proposedCredential", "previousFailureCount", "failureResponse", "error",
                "accepts", "persistenceAllowed", "url", "method",
            ])
        #expect(Self.challenge.json["protectionSpace"] == Self.challenge.protectionSpace.json)
        for absent in ["proposedCredential", "failureResponse", "error"] {
            #expect(Self.challenge.json[absent]?.isNull == true)
        }
    }

    @Test func offersStandInTheServersOrderWithSortedParameters() {
        #expect(
            Self.challenge.json["offers"]?.text
                == #"[{"scheme":"Digest","authenticationMethod":"httpDigest","realm":"Staff","#
                + #""params":{"algorithm":"SHA-256","qop":"auth"},"raw":"Digest realm=…","supported":true},"#
                + #"{"scheme":"Hawk","authenticationMethod":"other","realm":null,"params":{},"raw":"Hawk","supported":false}]"#
        )
    }

    @Test func aRefusedCredentialIsShownWithoutItsSecret() {
        var challenge = Self.challenge
        challenge.proposedCredential = ProposedCredential(user: "bob", hasPassword: true, source: .session)
        challenge.previousFailureCount = 1
        challenge.failureResponse = .init(status: 401, headers: [HeaderField("WWW-Authenticate", "Basic")])
        let json = challenge.json
        #expect(json["proposedCredential"]?.text == #"{"user":"bob","hasPassword":true,"source":"session"}"#)
        #expect(json["previousFailureCount"] == 1)
        #expect(json["failureResponse"]?.text == #"{"status":401,"headers":[["WWW-Authenticate","Basic"]]}"#)
    }

    @Test(arguments: [
        (Challenge.AnswerProblem.credentialAlreadyRefused, "credentialAlreadyRefused"),
        (.nothingProposed, "nothingProposed"), (.credentialNotUsable, "credentialNotUsable"),
    ])
    func anAnswerThatWasNotSentIsExplained(problem: Challenge.AnswerProblem, kind: String) throws {
        var challenge = Self.challenge
        challenge.error = problem
        let error = try #require(challenge.json["error"])
        #expect(error["kind"]?.string == kind)
        #expect(try #require(error["message"]?.string).hasSuffix("."))
    }
}

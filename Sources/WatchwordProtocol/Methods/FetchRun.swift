public import JSONText

/// `fetch/run`: performs a fetch and returns its result in one reply.
public enum FetchRun: CallableMethod, Equatable {
    case fetch(FetchRunParams)
    /// Continues a fetch whose first call returned `authRequired`.
    case resume(token: String, ChallengeAnswer)

    public enum Result: Sendable {
        case response(FetchRunResult)
        case authRequired(Boxed<AuthChallengeParams>, resume: String)
    }

    public static let name = "fetch/run"
    public static let access = MethodAccess.everyClient

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        guard let token = try members.string("resume") else {
            self = .fetch(try FetchRunParams(json))
            return
        }
        try members.refuseMembers(otherThan: ["resume", "answer"])
        self = .resume(token: token, try ChallengeAnswer(members.required("answer", members["answer"])))
    }

    public var json: JSON {
        switch self {
        case .fetch(let params): params.json
        case .resume(let token, let answer): ["resume": .string(token), "answer": answer.json]
        }
    }

    public static func json(_ result: Result) -> JSON {
        switch result {
        case .response(let response): response.json
        case .authRequired(let challenge, let token):
            ["state": "authRequired", "challenge": challenge.value.json, "resume": .string(token)]
        }
    }
}

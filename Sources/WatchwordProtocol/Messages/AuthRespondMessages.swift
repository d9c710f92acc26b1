public import JSONText

/// `auth/respond`: the answer to a challenge that came as `auth/pending`.
public struct AuthRespondParams: Sendable, Equatable {
    public var challengeID: String
    /// `nil` when the answer is not one: the challenge stays open, and `problem` says why.
    public var answer: AgentAnswer?
    public var problem: String?

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        challengeID = try members.required("challengeId", members.string("challengeId"))
        let json = try members.required("answer", members["answer"])
        do {
            answer = try AgentAnswer(json)
        } catch {
            problem = error.detail
        }
    }
}

/// What became of an answer.
public enum AuthRespondResult: Sendable, Equatable {
    case accepted
    /// There is no such challenge: it was never made, or its fetch has ended.
    case gone
    /// Somebody, or the deadline, was faster.
    case answered
    case invalid(problem: String)

    public var json: JSON {
        switch self {
        case .accepted: ["accepted": true]
        case .gone: ["accepted": false, "reason": "gone"]
        case .answered: ["accepted": false, "reason": "answered"]
        case .invalid(let problem): ["accepted": false, "reason": "invalid", "detail": .string(problem)]
        }
    }
}

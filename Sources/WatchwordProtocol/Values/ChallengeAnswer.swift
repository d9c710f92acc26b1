public import JSONText

/// One of the five answers to a challenge.
public enum ChallengeAnswer: Sendable, Equatable {
    /// One attempt with this credential.
    case credential(Credential)
    /// `continue`: no further authentication. The response with the challenge becomes the result, with its body.
    case proceed
    /// `cancel`: the fetch fails.
    case cancel
    /// `default`: the broker continues as if this respondent had not been asked.
    case useDefault
    /// `reject`: the broker asks again with the next offered scheme.
    case reject
}

extension ChallengeAnswer: ClientValue {
    public static var path: String { "answer" }

    public init(_ members: Members) throws(InvalidParams) {
        let action = try members.required("action", members.string("action"))
        switch action {
        case "credential":
            self = .credential(
                try members.required("credential", members.value("credential", as: Credential.self)))
        case "continue": self = .proceed
        case "cancel": self = .cancel
        case "default": self = .useDefault
        case "reject": self = .reject
        default: throw members.wrong("action", "one of: credential, continue, cancel, default, reject")
        }
    }

    /// The value of `action` in a message.
    public var action: String {
        switch self {
        case .credential: "credential"
        case .proceed: "continue"
        case .cancel: "cancel"
        case .useDefault: "default"
        case .reject: "reject"
        }
    }

    /// May contain a password: serialize it with `JSON.write(_:)`.
    public var json: JSON {
        guard case .credential(let credential) = self else { return ["action": .string(action)] }
        return ["action": .string(action), "credential": credential.json]
    }
}

/// An agent's answer to a challenge: one of the five answers, and with `cancel` whether to stop all questions of the program.
public struct AgentAnswer: ClientValue, Sendable, Equatable {
    public var answer: ChallengeAnswer
    /// Whether agents receive no further questions of this program. Only valid with `cancel`.
    public var stopsAsking: Bool

    public init(_ answer: ChallengeAnswer, stopsAsking: Bool = false) {
        (self.answer, self.stopsAsking) = (answer, stopsAsking)
    }

    public static var path: String { "answer" }

    public init(_ members: Members) throws(InvalidParams) {
        self.init(try ChallengeAnswer(members))
        if answer == .cancel { stopsAsking = try members.boolean("stopAsking") ?? false }
    }

    /// May contain a password: serialize it with `JSON.write(_:)`.
    public var json: JSON { stopsAsking ? answer.json.adding(["stopAsking": true]) : answer.json }
}

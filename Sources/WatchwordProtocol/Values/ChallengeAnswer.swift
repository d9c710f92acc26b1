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

extension ChallengeAnswer {
    /// Parses an answer. An unknown member makes it invalid.
    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, at: "answer")
        let action = try members.required("action", members.string("action"))
        if action == "credential" {
            try members.refuseMembers(otherThan: ["action", "credential"])
            let credential = try members.required("credential", members["credential"])
            self = .credential(try Credential(credential, at: "answer.credential"))
            return
        }
        try members.refuseMembers(otherThan: ["action"])
        switch action {
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

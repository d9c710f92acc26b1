public import JSONText

/// One of the five answers to a challenge.
public enum ChallengeAnswer: Sendable, Equatable {
    /// One attempt with it.
    case credential(Credential)
    /// `continue`: no more authentication; the response that challenged becomes the result, with its body.
    case proceed
    /// The fetch fails.
    case cancel
    /// As though nobody had been asked.
    case useDefault
    /// Not this scheme: ask with the next one that was offered.
    case reject
}

extension ChallengeAnswer {
    /// Strict: a member that it does not know makes the whole answer invalid.
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

    /// The word that stands for it on the wire.
    public var action: String {
        switch self {
        case .credential: "credential"
        case .proceed: "continue"
        case .cancel: "cancel"
        case .useDefault: "default"
        case .reject: "reject"
        }
    }

    /// May hold a password: it must be written with `JSON.write(_:)`.
    public var json: JSON {
        guard case .credential(let credential) = self else { return ["action": .string(action)] }
        return ["action": .string(action), "credential": credential.json]
    }
}

internal import JSONText

/// A prompt of a program that logs in by itself, such as ssh or sudo (`prompt/ask`). Its texts are not trustworthy.
public struct ProgramPrompt: Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        /// The answer is a secret, such as a password.
        case secret
        /// The answer may be shown while it is typed, such as a user name.
        case text
        /// The answer is yes or no.
        case confirmation
        /// No answer: the text is shown until a person closes it, or the program needs it no longer.
        case information
    }

    public var text: String
    public var kind: Kind
    /// The program that prompts, as the client names it; `nil` if the client does not know it. Not verified.
    public var program: String?

    public init(text: String, kind: Kind, program: String?) {
        (self.text, self.kind, self.program) = (text, kind, program)
    }

    init(_ members: Members) throws(InvalidParams) {
        text = try members.required("text", members.string("text"))
        kind = try members.required("kind", members.choice("kind", as: Kind.self))
        program = try members.string("program")?.shortened
        guard text.utf8.count <= Limits.promptTextBytes else {
            throw members.wrong("text", "a string of at most \(Limits.promptTextBytes) bytes")
        }
    }

    var json: JSON {
        ["text": .string(text), "kind": .string(kind.rawValue), "program": program.map { .string($0) }]
    }
}

/// A person's answer to the prompt of a program.
public enum PromptAnswer: Sendable, Equatable {
    /// For the kinds `secret` and `text`: one line.
    case value(Secret)
    /// For `confirmation`.
    case allow(Bool)
    /// For `information`: a person has closed the text.
    case closed

    /// May contain a secret: serialize it with `JSON.write(_:)`.
    var json: JSON {
        switch self {
        case .value(let value): ["value": value.withUnsafeBytes { JSON.string(secret: $0) } ?? .null]
        case .allow(let isAllowed): ["allow": .boolean(isAllowed)]
        case .closed: [:]
        }
    }
}

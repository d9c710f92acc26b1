public import JSONText

/// The parameters of `auth/prompt`, which shows the prompt of a program at an agent.
public struct AuthPromptParams: Sendable, Equatable {
    public var promptID: String
    public var prompt: ProgramPrompt
    /// The client that called `prompt/ask`.
    public var requester: Requester
    /// Milliseconds from now until the broker asks the next agent, or continues without an answer.
    public var deadlineMs: Int

    public init(promptID: String, prompt: ProgramPrompt, requester: Requester, deadlineMs: Int) {
        self.promptID = promptID
        self.prompt = prompt
        self.requester = requester
        self.deadlineMs = deadlineMs
    }

    public var json: JSON {
        let names: JSON = ["promptId": .string(promptID)]
        return names.adding(prompt.json).adding([
            "requester": requester.json, "deadlineMs": .integer(deadlineMs),
        ])
    }
}

/// The reply to `auth/prompt`.
public struct PromptReply: Sendable, Equatable {
    /// The value of `action`.
    public enum Action: String, Sendable, CaseIterable { case answer, allow, cancel }

    public var action: Action
    /// The typed line. Only with `answer`.
    public var value: Secret?
    /// Whether agents receive no further questions of this program. Only with `cancel`.
    public var stopsAsking = false

    /// Parses a reply. An unknown member, or an action that is not for this kind of prompt, makes it invalid.
    public init(_ json: JSON?, to kind: ProgramPrompt.Kind) throws(InvalidParams) {
        let members = try Members(json, at: "answer")
        action = try members.required("action", members.choice("action", as: Action.self))
        switch (action, kind) {
        case (.answer, .secret), (.answer, .text):
            let value = try members.secret("value", maxBytes: Limits.credentialBytes)
            self.value = try members.required("value", value)
            // Askpass programs print the answer as one line, so the rest would be lost.
            // guard: a-prompt-is-answered-by-one-line
            guard self.value?.isOneLine == true else { throw members.wrong("value", "one line") }
        case (.allow, .confirmation): break
        case (.cancel, _): stopsAsking = try members.boolean("stopAsking") ?? false
        case (.answer, _), (.allow, _): throw members.wrong("action", "one for a prompt of the kind \(kind.rawValue)")
        }
        try members.refuseUnread()
    }

    /// The answer for the program; `nil` if a person has cancelled the prompt.
    public func answer(to kind: ProgramPrompt.Kind) -> PromptAnswer? {
        switch (action, kind) {
        case (_, .confirmation): .allow(action == .allow)
        case (_, .information): .closed
        case (.answer, _): value.map { .value($0) }
        case (.allow, _), (.cancel, _): nil
        }
    }
}

extension Secret {
    fileprivate var isOneLine: Bool {
        withUnsafeBytes { bytes in !bytes.contains { [0, UInt8(ascii: "\n"), UInt8(ascii: "\r")].contains($0) } }
    }
}

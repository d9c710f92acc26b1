public import JSONText

/// A program in `prompt/list`, whose questions are not sent to any agent.
public struct StoppedProgram: Sendable, Equatable {
    /// The program, as in `Subject.text`.
    public var subject: ExactText
    /// The time since a person stopped the questions.
    public var since: Duration
    /// The number of questions suppressed since then.
    public var unasked: Int

    public init(subject: ExactText, since: Duration, unasked: Int) {
        (self.subject, self.since, self.unasked) = (subject, since, unasked)
    }

    public var json: JSON {
        [
            "subject": subject.json, "sinceMs": .integer(max(0, since.wholeMilliseconds)),
            "unasked": .integer(unasked),
        ]
    }
}

/// `prompt/list`: lists the programs whose questions are stopped.
public struct PromptList: ParameterlessMethod {
    public static let name = "prompt/list"
    public init() {}
    public static func json(_ stopped: [StoppedProgram]) -> JSON { ["stopped": .array(stopped.map(\.json))] }
}

/// `prompt/resume`: allows the questions of one program, or of all programs, again.
public struct PromptResume: CallableMethod, Equatable {
    public static let name = "prompt/resume"

    /// The program, as in `Subject.text`; `nil` means all.
    public var subject: ExactText?

    /// - Throws: `InvalidParams`, also if neither `subject` nor `all` is given, or both.
    public init(_ members: Members) throws(InvalidParams) {
        subject = try members.exactText("subject")
        let isForAll = try members.boolean("all") ?? false
        try members.refuseUnread()
        guard (subject == nil) == isForAll else {
            throw InvalidParams("params must contain either subject, from prompt/list, or all: true")
        }
    }

    public init(subject: ExactText?) { self.subject = subject }

    public var json: JSON { subject.map { ["subject": $0.json] } ?? ["all": true] }

    public static func json(_ resumed: Int) -> JSON { ["resumed": .integer(resumed)] }
}

/// `prompt/ask`: shows the prompt of a program that logs in by itself, through an agent. Uses no stored credential, and
/// stores nothing.
public struct PromptAsk: CallableMethod, Equatable {
    public static let name = "prompt/ask"

    public var prompt: ProgramPrompt

    public init(_ members: Members) throws(InvalidParams) { prompt = try ProgramPrompt(members) }

    public init(_ prompt: ProgramPrompt) { self.prompt = prompt }

    public var json: JSON { prompt.json }

    public static func json(_ answer: PromptAnswer) -> JSON { answer.json }
}

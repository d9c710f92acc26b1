public import JSONText

/// One of the programs of `prompt/list`: its questions are put to no agent.
public struct StoppedProgram: Sendable, Equatable {
    /// As `Subject.text` has it.
    public var subject: ExactText
    /// How long ago a person has said so.
    public var since: Duration
    /// The questions that were not put since then.
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

/// `prompt/resume`: the questions of one program, or of all, are put again.
public struct PromptResumeParams: Sendable, Equatable {
    /// As `Subject.text` has it; `nil` means all.
    public var subject: ExactText?

    /// - Throws: `InvalidParams`, also where nothing says which programs are meant.
    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, only: ["subject", "all"])
        subject = try members.exactText("subject")
        let isForAll = try members.boolean("all") ?? false
        guard (subject == nil) == isForAll else {
            throw InvalidParams("params needs a subject of prompt/list, or all as true; one of them")
        }
    }

    public init(subject: ExactText?) { self.subject = subject }

    public var json: JSON { subject.map { ["subject": $0.json] } ?? ["all": true] }
}

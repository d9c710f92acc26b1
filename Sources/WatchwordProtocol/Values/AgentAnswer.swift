public import JSONText

/// An agent's answer to a challenge: one of the five answers, and with `cancel` whether to stop all questions of the program.
public struct AgentAnswer: Sendable, Equatable {
    public var answer: ChallengeAnswer
    /// Whether agents receive no further questions of this program. Only valid with `cancel`.
    public var stopsAsking: Bool

    public init(_ answer: ChallengeAnswer, stopsAsking: Bool = false) {
        (self.answer, self.stopsAsking) = (answer, stopsAsking)
    }

    /// Parses an answer. An unknown member makes it invalid, as in all answers.
    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, at: "answer")
        guard try members.string("action") == ChallengeAnswer.cancel.action else {
            self.init(try ChallengeAnswer(json))
            return
        }
        try members.refuseMembers(otherThan: ["action", "stopAsking"])
        self.init(.cancel, stopsAsking: try members.boolean("stopAsking") ?? false)
    }

    /// May contain a password: serialize it with `JSON.write(_:)`.
    public var json: JSON { stopsAsking ? answer.json.adding(["stopAsking": true]) : answer.json }
}

public import JSONText

/// What an agent answers to a challenge: one of the five answers, and with `cancel` whether people are to be asked for this
/// program any longer.
public struct AgentAnswer: Sendable, Equatable {
    public var answer: ChallengeAnswer
    /// Only beside `cancel`: the questions of this program are put to no agent any more.
    public var stopsAsking: Bool

    public init(_ answer: ChallengeAnswer, stopsAsking: Bool = false) {
        (self.answer, self.stopsAsking) = (answer, stopsAsking)
    }

    /// Strict, as all answers are.
    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, at: "answer")
        guard try members.string("action") == ChallengeAnswer.cancel.action else {
            self.init(try ChallengeAnswer(json))
            return
        }
        try members.refuseMembers(otherThan: ["action", "stopAsking"])
        self.init(.cancel, stopsAsking: try members.boolean("stopAsking") ?? false)
    }

    /// May hold a password: it must be written with `JSON.write(_:)`.
    public var json: JSON { stopsAsking ? answer.json.adding(["stopAsking": true]) : answer.json }
}

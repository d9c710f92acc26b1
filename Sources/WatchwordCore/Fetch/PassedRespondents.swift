internal import WatchwordProtocol

/// The respondents that had a question and gave no credential for it, and those that could not be asked.
struct PassedRespondents: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// Those that answered `default`.
    private(set) var declined: Set<Respondent>
    /// Those that were asked and never answered.
    private(set) var silent: Set<Respondent> = []
    /// Those that were not asked.
    private(set) var unasked: [Respondent: Unanswered.NoRespondent] = [:]
    private var hasAnswer = false

    init(declined: Set<Respondent> = []) { self.declined = declined }

    init(arrayLiteral respondents: Respondent...) { declined = Set(respondents) }

    /// Whether a respondent was asked in vain: from then on only an answer sends anything that is stored (security rule X1).
    var isAbandoned: Bool { !silent.isEmpty }

    var isEmpty: Bool { declined.isEmpty && silent.isEmpty && unasked.isEmpty }

    /// Whether anybody was asked at all: `default` stands for nobody.
    var wasAnybodyAsked: Bool { hasAnswer || !silent.subtracting(unasked.keys).isEmpty }

    /// Whether this respondent need not be asked again.
    func contains(_ respondent: Respondent) -> Bool {
        declined.contains(respondent) || silent.contains(respondent) || unasked[respondent] != nil
    }

    /// Somebody has said something else than `default` to the question.
    mutating func noteAnswer() { hasAnswer = true }

    mutating func noteDefault(of respondent: Respondent) { declined.insert(respondent) }

    /// The next scheme is a new question for those that answered; whoever was silent stays silent (security rule X1).
    mutating func noteRejection() { (declined, unasked, hasAnswer) = ([], [:], true) }

    mutating func noteSilence(of respondent: Respondent) { silent.insert(respondent) }

    /// A client that is not there any more counts as silent as well (security rule X1).
    mutating func noteUnasked(_ respondent: Respondent, because cause: Unanswered.NoRespondent) {
        unasked[respondent] = cause
        if cause == .unsubscribed { silent.insert(respondent) }
    }

    mutating func formUnion(_ other: PassedRespondents) {
        declined.formUnion(other.declined)
        silent.formUnion(other.silent)
        unasked.merge(other.unasked) { own, _ in own }
        hasAnswer = hasAnswer || other.hasAnswer
    }

    /// The part that holds for other fetches of the same client: the handler was of this fetch alone.
    var forOtherFetches: PassedRespondents {
        var others = self
        others.declined.remove(.handler)
        others.silent.remove(.handler)
        others.unasked[.handler] = nil
        return others
    }

    /// The part that holds for the fetches of another client: the agents need not be asked twice, where they were asked or
    /// there are none. That nobody answered for this client says nothing about what the other may use.
    var forOtherClients: PassedRespondents {
        var others = PassedRespondents()
        switch unasked[.agents] {
        case .noAgent?: others.unasked[.agents] = .noAgent
        case nil where contains(.agents): others.declined = [.agents]
        default: break
        }
        return others
    }
}

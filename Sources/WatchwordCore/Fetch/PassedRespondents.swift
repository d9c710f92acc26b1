internal import WatchwordProtocol

/// The respondents that were asked a question and supplied no credential, or could not be asked.
struct PassedRespondents: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// The respondents that answered `default`.
    private(set) var declined: Set<Respondent>
    /// The respondents that were asked and never answered, and clients that have ended their subscription.
    private(set) var silent: Set<Respondent> = []
    /// The respondents that could not be asked.
    private(set) var unasked: [Respondent: Unanswered.NoRespondent] = [:]
    private var hasAnswer = false

    init(declined: Set<Respondent> = []) { self.declined = declined }

    init(arrayLiteral respondents: Respondent...) { declined = Set(respondents) }

    /// Whether a respondent was asked and never answered. After that, a stored credential is sent only if another
    /// respondent answers with it (SECURITY-RULES X1).
    var isAbandoned: Bool { !silent.isEmpty }

    /// Whether any respondent was asked, whatever it answered.
    var hasBeenAsked: Bool { !declined.isEmpty || wasAsked }

    /// Whether any respondent was asked. A respondent that answered `default` does not count.
    var wasAsked: Bool { hasAnswer || !silent.subtracting(unasked.keys).isEmpty }

    /// Whether this respondent has answered `default`, never answered, or could not be asked.
    func contains(_ respondent: Respondent) -> Bool {
        declined.contains(respondent) || silent.contains(respondent) || unasked[respondent] != nil
    }

    /// Records an answer other than `default`.
    mutating func recordAnswer() { hasAnswer = true }

    mutating func recordDefault(of respondent: Respondent) { declined.insert(respondent) }

    /// Records `reject`: the next scheme is a new question for all but the silent respondents (SECURITY-RULES X1).
    mutating func recordRejection() { (declined, unasked, hasAnswer) = ([], [:], true) }

    mutating func recordSilence(of respondent: Respondent) { silent.insert(respondent) }

    /// Records a respondent that could not be asked. A client that has ended its subscription counts as silent as well
    /// (SECURITY-RULES X1).
    mutating func recordUnasked(_ respondent: Respondent, because cause: Unanswered.NoRespondent) {
        unasked[respondent] = cause
        if cause == .unsubscribed { silent.insert(respondent) }
    }

    mutating func formUnion(_ other: PassedRespondents) {
        declined.formUnion(other.declined)
        silent.formUnion(other.silent)
        unasked.merge(other.unasked) { own, _ in own }
        hasAnswer = hasAnswer || other.hasAnswer
    }

    /// The part that applies to other fetches of the same client: all but the handler, which belongs to this fetch
    /// alone.
    var forOtherFetches: PassedRespondents {
        var others = self
        others.declined.remove(.handler)
        others.silent.remove(.handler)
        others.unasked[.handler] = nil
        return others
    }

    /// The part that applies to fetches of another client: agents are not asked again if they were asked, or if there
    /// are none. A respondent's silence towards this client does not bar the other client from stored credentials.
    var forOtherClients: PassedRespondents {
        var others = PassedRespondents()
        if let cause = unasked[.agents] {
            if cause == .noAgent { others.unasked[.agents] = .noAgent }
        } else if contains(.agents) {
            others.declined = [.agents]
        }
        return others
    }
}

/// The respondents that had a question and gave no credential for it.
struct PassedRespondents: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// Those that answered `default`.
    private(set) var declined: Set<Respondent>
    /// Those that were asked and never answered.
    private(set) var silent: Set<Respondent> = []

    init(declined: Set<Respondent> = []) { self.declined = declined }

    init(arrayLiteral respondents: Respondent...) { declined = Set(respondents) }

    /// Whether a respondent was asked in vain: from then on only an answer sends anything that is stored (security rule X1).
    var isAbandoned: Bool { !silent.isEmpty }

    var isEmpty: Bool { declined.isEmpty && silent.isEmpty }

    /// Whether this respondent need not be asked again.
    func contains(_ respondent: Respondent) -> Bool {
        declined.contains(respondent) || silent.contains(respondent)
    }

    mutating func noteDefault(of respondent: Respondent) { declined.insert(respondent) }

    /// The next scheme is a new question for those that answered; whoever was silent stays silent (security rule X1).
    mutating func noteRejection() { declined = [] }

    mutating func noteSilence(of respondent: Respondent) { silent.insert(respondent) }

    mutating func formUnion(_ other: PassedRespondents) {
        declined.formUnion(other.declined)
        silent.formUnion(other.silent)
    }

    /// The part that holds for the fetches of another client: the agents need not be asked twice. That nobody answered for
    /// this client says nothing about what the other may use.
    var forOtherClients: PassedRespondents { contains(.agents) ? [.agents] : [] }
}

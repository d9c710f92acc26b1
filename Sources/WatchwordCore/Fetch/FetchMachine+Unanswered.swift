internal import WatchwordProtocol

/// Questions that nobody answered: the connection or the time of the respondent is over, or it failed. Security rule X1: that
/// never sends a credential.
extension FetchMachine {
    /// Nobody answers the last `ask`. The next respondent has the question; after the last one the challenge is the result.
    mutating func unanswered(_ environment: FetchEnvironment, _ memory: inout CredentialMemory) -> FetchStep {
        guard case .asking(var question, let respondent) = state else { return unexpected(&memory) }
        time.endQueue(environment.now)
        question.declined.noteSilence(of: respondent)
        return choose(question, environment, &memory)
    }

    /// Whom the last `ask` is for cannot be asked. The next respondent has the question, as after `default`.
    mutating func notAsked(
        _ cause: Unanswered.NoRespondent, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard case .asking(var question, let respondent) = state else { return unexpected(&memory) }
        time.endQueue(environment.now)
        question.declined.noteUnasked(respondent, because: cause)
        return choose(question, environment, &memory)
    }

    /// Rule 28: why nobody was asked to log in; `nil` where somebody was.
    func unanswered(_ question: Question, _ memory: CredentialMemory) -> Unanswered? {
        guard case .login(let offers, let side) = question.kind, !question.declined.wasAnybodyAsked else { return nil }
        let schemes = offers.verdicts.map { verdict -> Unanswered.Scheme in
            let hasNoTicket = verdict.isNegotiate && !hasTicket(at: offers.challenger, memory)
            return Unanswered.Scheme(verdict.scheme, verdict.refusal ?? (hasNoTicket ? .noTicket : .noRespondent))
        }
        guard !schemes.isEmpty else { return nil }
        let cause: Unanswered.NoRespondent? =
            schemes.contains { $0.reason == .noRespondent } ? noRespondent(question) : nil
        return Unanswered(schemes: schemes, cause: cause, isOfProxy: side == .proxy)
    }

    private func hasTicket(at challenger: Challenger, _ memory: CredentialMemory) -> Bool {
        ownCandidate(for: .negotiate, in: AnswerableChallenge.negotiate.protectionSpace(at: challenger), memory) != nil
    }

    private func noRespondent(_ question: Question) -> Unanswered.NoRespondent {
        if plan.interaction == .none { return .interaction }
        let cause =
            question.declined.unasked[.agents] ?? (question.declined.contains(.agents) ? .noAgent : .canAuthenticate)
        let isUnsubscribed = [.handler, .client].contains { question.declined.unasked[$0] == .unsubscribed }
        return cause == .noAgent && isUnsubscribed ? .unsubscribed : cause
    }

    /// Nobody answers the last `consult`: nothing that is stored is used, and nobody is asked about the space.
    mutating func noteSilence(about consultation: Consultation) {
        if case .canAuthenticate(let space) = consultation {
            targets[Challenger(space), default: TargetRecord()].canAuthenticate[space] = false
        }
        storageAnswer = false
    }
}

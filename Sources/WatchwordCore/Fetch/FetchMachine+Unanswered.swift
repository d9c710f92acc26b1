internal import WatchwordProtocol

/// Questions that nobody answered: the connection or the time of the respondent is over, or it failed. Security rule X1: that
/// never sends a credential.
extension FetchMachine {
    /// Nobody answers the last `ask`. The next respondent has the question; after the last one the challenge is the result.
    mutating func unanswered(_ context: inout FetchContext) -> FetchStep {
        guard case .asking(var question, let respondent) = state else { return unexpected(&context) }
        time.endQueue(context.now)
        question.declined.noteSilence(of: respondent)
        return choose(question, &context)
    }

    /// Whom the last `ask` is for cannot be asked. The next respondent has the question, as after `default`.
    mutating func notAsked(
        _ cause: Unanswered.NoRespondent, _ context: inout FetchContext
    ) -> FetchStep {
        guard case .asking(var question, let respondent) = state else { return unexpected(&context) }
        time.endQueue(context.now)
        question.declined.noteUnasked(respondent, because: cause)
        return choose(question, &context)
    }

    /// Rule 28: why nobody was asked to log in; `nil` where somebody was.
    func unanswered(_ question: Question, _ context: FetchContext) -> Unanswered? {
        guard case .login(let offers, let side) = question.kind, !question.declined.wasAnybodyAsked else { return nil }
        let schemes = offers.verdicts.map { verdict -> Unanswered.Scheme in
            let hasNoTicket = verdict.isNegotiate && !hasTicket(at: offers.challenger, context)
            return Unanswered.Scheme(verdict.scheme, verdict.refusal ?? (hasNoTicket ? .noTicket : .noRespondent))
        }
        guard !schemes.isEmpty else { return nil }
        let cause: Unanswered.NoRespondent? =
            schemes.contains { $0.reason == .noRespondent } ? noRespondent(question) : nil
        return Unanswered(schemes: schemes, cause: cause, isOfProxy: side == .proxy)
    }

    private func hasTicket(at challenger: Challenger, _ context: FetchContext) -> Bool {
        ownCandidate(for: .negotiate, in: AnswerableChallenge.negotiate.protectionSpace(at: challenger), context) != nil
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

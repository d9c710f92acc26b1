internal import WatchwordProtocol

/// The reasons why no respondent was asked to log in: SEMANTICS rule 28.
extension LoginResolution {
    /// Returns why no respondent was asked; `nil` if one was.
    func unanswered(_ question: Question, _ context: FetchContext) -> Unanswered? {
        // guard: asked-respondent-needs-no-reason
        guard case .login(let offers, let side) = question.kind, !question.declined.wasAsked else { return nil }
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
        search.ownCandidate(for: .negotiate, in: AnswerableChallenge.negotiate.protectionSpace(at: challenger), context)
            != nil
    }

    private func noRespondent(_ question: Question) -> Unanswered.NoRespondent {
        if intent.plan.interaction == .none { return .interaction }
        let cause =
            question.declined.unasked[.agents] ?? (question.declined.contains(.agents) ? .noAgent : .canAuthenticate)
        let isUnsubscribed = [.handler, .client].contains { question.declined.unasked[$0] == .unsubscribed }
        return cause == .noAgent && isUnsubscribed ? .unsubscribed : cause
    }
}

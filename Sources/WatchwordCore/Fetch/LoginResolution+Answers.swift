internal import WatchwordProtocol

/// Handles the answers to login challenges.
extension LoginResolution {
    mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, _ question: Question,
        _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        guard case .login(let offers, _) = question.kind, let asked = question.asked else {
            return .fail(.unexpectedEvent)
        }
        switch answer {
        case .credential(.login(let credential)):
            recordLogin(question, &hop)
            return use(credential, of: respondent, offers, question, &hop, &context)
        case .credential(.proposed):
            return useProposed(for: asked, offers, question, respondent, &hop, &context)
        case .credential(.stored(let id)):
            return useStored(id, for: asked, offers, question, respondent, &hop, &context)
        case .credential(.certificate), .credential(.trust):
            return .ask(question, respondent, .credentialOfWrongType)
        case .reject:
            recordRejection(of: question, &hop)
            hop.leases.release(.rejected(by: respondent), answeredBy: respondent, question.slot, &context)
            var question = question
            question.declined.recordRejection()
            return choose(question, &hop, &context)
        case .proceed, .cancel, .useDefault:
            hop.leases.release(.proceed, answeredBy: respondent, question.slot, &context)
            return proceed(question)
        }
    }

    /// Attempts the credential of an answer, or asks again if the credential is known to fail. A header credential
    /// names its scheme, which may be any that the server offers.
    private mutating func use(
        _ credential: LoginCredential, of respondent: Respondent, _ offers: OfferList, _ question: Question,
        _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        var question = question
        if case .header(let scheme, _) = credential.form,
            let meant = offers.answerable.first(where: { $0.scheme == scheme.string.asciiLowercased })
        {
            if meant.protectionSpace(at: offers.challenger) != question.asked?.protectionSpace(at: offers.challenger) {
                question.ask(meant)
            }
        }
        guard let asked = question.asked else { return .fail(.unexpectedEvent) }
        let space = asked.protectionSpace(at: offers.challenger)
        context.session.wallTime = context.environment.sinceEpoch
        let problem =
            asked.problem(with: credential, at: offers.challenger)
            ?? hop.problem(with: credential, at: offers.challenger, context)
        if let problem {
            return .ask(question, respondent, problem)
        }
        guard !hop[offers.challenger].hasRefused(credential, in: space),
            !hop[offers.challenger].tokens.isTooNarrow(credential, for: asked)
        else {
            hop[offers.challenger].recordRepeatedAnswer()
            return .ask(question, respondent, .credentialAlreadyRefused)
        }
        var candidate = Candidate(
            credential: credential, source: respondent.source, partition: hop.fetch.access.partition)
        candidate.mark = question.mark
        candidate.isAnswer = true
        candidate.respondent = respondent
        return attempt(candidate, for: asked, in: space, question, &hop, &context)
    }

    private mutating func useProposed(
        for asked: AnswerableChallenge, _ offers: OfferList, _ question: Question, _ respondent: Respondent,
        _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        let space = asked.protectionSpace(at: offers.challenger)
        let record = hop[offers.challenger]
        if var proposed = question.proposed, hop.mayUse(proposed.source, for: space, context),
            !hop.isForgotten(proposed, in: space, context), !record.hasRefused(proposed.credential, in: space)
        {
            proposed.isAnswer = true
            return attempt(proposed, for: asked, in: space, question, &hop, &context)
        }
        if let refused = record.lastRefused, refused.space == space {
            return use(refused.credential, of: respondent, offers, question, &hop, &context)
        }
        return .ask(question, respondent, .nothingProposed)
    }

    /// Attempts the stored credential that a respondent has chosen from the list in the challenge.
    private mutating func useStored(
        _ id: CredentialID, for asked: AnswerableChallenge, _ offers: OfferList, _ question: Question,
        _ respondent: Respondent, _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        let space = asked.protectionSpace(at: offers.challenger)
        context.session.wallTime = context.environment.sinceEpoch
        guard var chosen = question.known.first(where: { $0.id == id })?.candidate,  // guard: known-users-listed
            hop.mayUse(chosen.source, for: space, context),
            !hop.isForgotten(chosen, in: space, context),
            hop.isUsable(chosen, for: asked, in: space, context)
        else { return .ask(question, respondent, .credentialNotKnown) }
        chosen.isAnswer = true
        return attempt(chosen, for: asked, in: space, question, &hop, &context)
    }

    /// Continues without a login, as a respondent has answered. The response that challenged becomes the result.
    func proceed(_ question: Question) -> Resolution {
        var question = question
        question.obstacle = nil
        return .endUnanswered(question)
    }

    /// Drops the scheme that a respondent has rejected (SEMANTICS rule 14).
    mutating func recordRejection(of question: Question, _ hop: inout HopState) {
        guard case .login(let offers, _) = question.kind, let asked = question.asked else { return }
        hop[offers.challenger].recordRejection(of: asked, in: asked.protectionSpace(at: offers.challenger))
    }

    /// Asks the respondent of the previous round for the next round of a scheme that only the client implements.
    func continueRounds(_ next: AnswerableChallenge, after attempt: Attempt, _ question: Question, _ hop: HopState)
        -> Resolution
    {
        var question = question
        question.ask(next)
        if case .header(_, let state) = attempt.credential.form { question.state = state }
        guard
            let respondent = attempt.respondent
                ?? hop.nextRespondent(after: question.declined, in: attempt.space)
        else { return .endUnanswered(question) }
        return .ask(question, respondent, nil)
    }
}

/// The reasons why no respondent was asked to log in: SEMANTICS rule 28.
extension LoginResolution {
    /// Returns why no respondent was asked; `nil` if one was.
    func unanswered(_ question: Question, _ hop: HopState, _ context: FetchContext) -> Unanswered? {
        guard case .login(let offers, let side) = question.kind, !question.declined.wasAsked else { return nil }
        let schemes = offers.verdicts.map { verdict -> Unanswered.Scheme in
            let hasNoTicket = verdict.isNegotiate && !hasTicket(at: offers.challenger, hop, context)
            return Unanswered.Scheme(verdict.scheme, verdict.refusal ?? (hasNoTicket ? .noTicket : .noRespondent))
        }
        guard !schemes.isEmpty else { return nil }
        let cause: Unanswered.NoRespondent? =
            schemes.contains { $0.reason == .noRespondent } ? noRespondent(question, hop) : nil
        return Unanswered(schemes: schemes, cause: cause, isOfProxy: side == .proxy)
    }

    private func hasTicket(at challenger: Challenger, _ hop: HopState, _ context: FetchContext) -> Bool {
        hop.ownCandidate(for: .negotiate, in: AnswerableChallenge.negotiate.protectionSpace(at: challenger), context)
            != nil
    }

    private func noRespondent(_ question: Question, _ hop: HopState) -> Unanswered.NoRespondent {
        if hop.fetch.interaction == .none { return .interaction }
        if let asked = question.asked, case .login(let offers, _) = question.kind,
            hop.consent.isDenied(in: asked.protectionSpace(at: offers.challenger))
        {
            return .consentDenied
        }
        let cause =
            question.declined.unasked[.agents] ?? (question.declined.contains(.agents) ? .noAgent : .canAuthenticate)
        let isUnsubscribed = [.handler, .client].contains { question.declined.unasked[$0] == .unsubscribed }
        return cause == .noAgent && isUnsubscribed ? .unsubscribed : cause
    }
}

internal import WatchwordProtocol

/// What somebody answers to a question about a login.
extension LoginResolution {
    mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, _ question: Question,
        _ context: inout FetchContext
    ) -> Resolution {
        guard case .login(let offers, _) = question.kind, let asked = question.asked else {
            return .fail(.unexpectedEvent)
        }
        switch answer {
        case .credential(.login(let credential)):
            return use(credential, of: respondent, offers, question, &context)
        case .credential(.proposed):
            return useProposed(for: asked, offers, question, respondent, &context)
        case .credential(.stored(let id)):
            return useStored(id, for: asked, offers, question, respondent, &context)
        case .credential(.certificate), .credential(.trust):
            return .ask(question, respondent, .credentialOfWrongType)
        case .reject:
            noteRejection(of: question)
            search.situation.turns.release(.rejected(by: respondent), answeredBy: respondent, question.slot, &context)
            var question = question
            question.declined.noteRejection()
            return choose(question, &context)
        case .proceed, .cancel, .useDefault:
            search.situation.turns.release(.proceed, answeredBy: respondent, question.slot, &context)
            return proceed(question)
        }
    }

    /// One attempt with what somebody answered, unless it is known to be of no use. A header says by itself which of the
    /// offered schemes it is for.
    private mutating func use(
        _ credential: LoginCredential, of respondent: Respondent, _ offers: OfferList, _ question: Question,
        _ context: inout FetchContext
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
            ?? search.problem(with: credential, at: offers.challenger, context)
        if let problem {
            return .ask(question, respondent, problem)
        }
        guard !search.situation[offers.challenger].hasRefused(credential, in: space),
            !search.situation[offers.challenger].isTooNarrow(credential, for: asked)
        else {
            search.situation[offers.challenger].noteRepeatedAnswer()
            return .ask(question, respondent, .credentialAlreadyRefused)
        }
        var candidate = Candidate(credential: credential, source: respondent.source, home: intent.access.home)
        candidate.mark = question.mark
        candidate.isAnswer = true
        candidate.respondent = respondent
        return attempt(candidate, for: asked, in: space, question, &context)
    }

    private mutating func useProposed(
        for asked: AnswerableChallenge, _ offers: OfferList, _ question: Question, _ respondent: Respondent,
        _ context: inout FetchContext
    ) -> Resolution {
        let space = asked.protectionSpace(at: offers.challenger)
        let record = search.situation[offers.challenger]
        if var proposed = question.proposed, search.situation.mayUse(proposed.source, for: space, context),
            !search.isForgotten(proposed, in: space, context), !record.hasRefused(proposed.credential, in: space)
        {
            proposed.isAnswer = true
            return attempt(proposed, for: asked, in: space, question, &context)
        }
        if let refused = record.lastRefused, refused.space == space {
            return use(refused.credential, of: respondent, offers, question, &context)
        }
        return .ask(question, respondent, .nothingProposed)
    }

    /// One attempt with the stored credential that a respondent has chosen: one of those that the challenge listed.
    private mutating func useStored(
        _ id: CredentialID, for asked: AnswerableChallenge, _ offers: OfferList, _ question: Question,
        _ respondent: Respondent, _ context: inout FetchContext
    ) -> Resolution {
        let space = asked.protectionSpace(at: offers.challenger)
        context.session.wallTime = context.environment.sinceEpoch
        guard var chosen = question.known.first(where: { $0.id == id })?.candidate,
            search.situation.mayUse(chosen.source, for: space, context),
            !search.isForgotten(chosen, in: space, context),
            search.isUsable(chosen, for: asked, in: space, context)
        else { return .ask(question, respondent, .credentialNotKnown) }
        chosen.isAnswer = true
        return attempt(chosen, for: asked, in: space, question, &context)
    }

    /// Somebody who was asked leaves it at what there is.
    func proceed(_ question: Question) -> Resolution {
        var question = question
        question.obstacle = nil
        return .giveUp(question)
    }

    /// Rule 14.
    mutating func noteRejection(of question: Question) {
        guard case .login(let offers, _) = question.kind, let asked = question.asked else { return }
        search.situation[offers.challenger].noteRejection(of: asked, in: asked.protectionSpace(at: offers.challenger))
    }

    /// The next round of a scheme that only the client knows is for whoever has made the last one.
    func goOn(_ next: AnswerableChallenge, after attempt: Attempt, _ question: Question) -> Resolution {
        var question = question
        question.ask(next)
        if case .header(_, let state) = attempt.credential.form { question.state = state }
        guard
            let respondent = attempt.respondent
                ?? search.situation.nextRespondent(after: question.declined, in: attempt.space)
        else { return .giveUp(question) }
        return .ask(question, respondent, nil)
    }
}

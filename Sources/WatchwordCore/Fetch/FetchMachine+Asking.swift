internal import WatchwordProtocol

/// Asking somebody, one fetch after the other, and what comes back.
extension FetchMachine {
    mutating func ask(
        _ question: Question, _ respondent: Respondent, problem: Challenge.AnswerProblem?,
        _ context: inout FetchContext
    ) -> FetchStep {
        if problem != nil {
            rounds += 1
            guard rounds <= Limits.authenticationRounds else {
                return tooManyAttempts(challenger(of: question), &context)
            }
        }
        guard let challenge = challenge(for: question, at: respondent, problem: problem, context) else {
            return unexpected(&context)
        }
        var question = question
        question.mark = context.forgets.mark
        state = .asking(question, respondent)
        return FetchStep(.ask(challenge, respondent))
    }

    /// The next round of a scheme that only the client knows is for whoever has made the last one.
    mutating func goOn(
        _ next: AnswerableChallenge, after attempt: Attempt, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        var question = question
        question.ask(next)
        if case .header(_, let state) = attempt.credential.form { question.state = state }
        guard let respondent = attempt.respondent ?? nextRespondent(for: question, in: attempt.space) else {
            return giveUp(question, &context)
        }
        return ask(question, respondent, problem: nil, &context)
    }

    // MARK: Answers about a log-in

    mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, _ offers: OfferList, _ side: Side, _ question: Question,
        _ context: inout FetchContext
    ) -> FetchStep {
        guard let asked = question.asked else { return unexpected(&context) }
        switch answer {
        case .credential(.login(let credential)):
            return use(credential, of: respondent, offers, question, &context)
        case .credential(.proposed):
            return useProposed(for: asked, offers, question, respondent, &context)
        case .credential(.stored(let id)):
            return useStored(id, for: asked, offers, question, respondent, &context)
        case .credential(.certificate), .credential(.trust):
            return ask(question, respondent, problem: .credentialOfWrongType, &context)
        case .reject:
            noteRejection(of: question)
            release(.rejected(by: respondent), answeredBy: respondent, slot(of: question), &context)
            var question = question
            question.declined.noteRejection()
            return choose(question, &context)
        case .proceed, .cancel, .useDefault:
            release(.proceed, answeredBy: respondent, slot(of: question), &context)
            return proceed(question, &context)
        }
    }

    /// One attempt with what somebody answered, unless it is known to be of no use. A header says by itself which of the
    /// offered schemes it is for.
    private mutating func use(
        _ credential: LoginCredential, of respondent: Respondent, _ offers: OfferList, _ question: Question,
        _ context: inout FetchContext
    ) -> FetchStep {
        var question = question
        if case .header(let scheme, _) = credential.form,
            let meant = offers.answerable.first(where: { $0.scheme == scheme.string.asciiLowercased })
        {
            if meant.protectionSpace(at: offers.challenger) != question.asked?.protectionSpace(at: offers.challenger) {
                question.ask(meant)
            }
        }
        guard let asked = question.asked else { return unexpected(&context) }
        let space = asked.protectionSpace(at: offers.challenger)
        context.session.wallTime = context.environment.sinceEpoch
        let problem =
            asked.problem(with: credential, at: offers.challenger)
            ?? self.problem(with: credential, at: offers.challenger, context)
        if let problem {
            return ask(question, respondent, problem: problem, &context)
        }
        guard !target(offers.challenger).hasRefused(credential, in: space),
            !target(offers.challenger).isTooNarrow(credential, for: asked)
        else {
            targets[offers.challenger, default: TargetRecord()].noteRepeatedAnswer()
            return ask(question, respondent, problem: .credentialAlreadyRefused, &context)
        }
        var candidate = Candidate(credential: credential, source: respondent.source, home: access.home)
        candidate.mark = question.mark
        candidate.isAnswer = true
        candidate.respondent = respondent
        return attempt(candidate, for: asked, in: space, question, &context)
    }

    private mutating func useProposed(
        for asked: AnswerableChallenge, _ offers: OfferList, _ question: Question, _ respondent: Respondent,
        _ context: inout FetchContext
    ) -> FetchStep {
        let space = asked.protectionSpace(at: offers.challenger)
        let record = target(offers.challenger)
        if var proposed = question.proposed, mayUse(proposed.source, for: space, context),
            !isForgotten(proposed, in: space, context), !record.hasRefused(proposed.credential, in: space)
        {
            proposed.isAnswer = true
            return attempt(proposed, for: asked, in: space, question, &context)
        }
        if let refused = record.lastRefused, refused.space == space {
            return use(refused.credential, of: respondent, offers, question, &context)
        }
        return ask(question, respondent, problem: .nothingProposed, &context)
    }

    // MARK: Whether and whom

    /// Rule 5: whether somebody who has not passed gets every challenge at once, before anything that is stored is sent.
    func asksFirst(in space: ProtectionSpace, after passed: PassedRespondents = []) -> Bool {
        let handlers = [(Respondent.handler, plan.handler), (.client, plan.subscription)]
        return handlers.contains { respondent, handler in
            handler?.mode == .everything && handler?.covers(space) == true && !passed.contains(respondent)
        }
    }

    /// Whether the fetch's own handler is asked next: what others have decided is not decided for it.
    func isForHandler(_ question: Question) -> Bool {
        space(of: question).flatMap { nextRespondent(for: question, in: $0) } == .handler
    }

    /// Whether the handler is asked also where others have found something: about certificates always, about logins in the
    /// mode `everything`.
    func isAsked(about found: SpaceTurns.Found, _ question: Question) -> Bool {
        guard case .login = found else { return true }
        return plan.handler?.mode == .everything
    }

    /// Rule 3: in the mode `classic` it has to say that it answers about connections, by naming the method.
    private func handlerCovers(_ space: ProtectionSpace) -> Bool {
        guard let handler = plan.handler, handler.covers(space) else { return false }
        return TurnSlot(space) != .connection || handler.mode == .everything || handler.methods != nil
    }

    func nextRespondent(for question: Question, in space: ProtectionSpace) -> Respondent? {
        if handlerCovers(space), !question.declined.contains(.handler) { return .handler }
        guard plan.interaction != .none, canAuthenticate(in: space) else { return nil }
        if plan.subscription?.covers(space) == true, !question.declined.contains(.client) { return .client }
        return question.declined.contains(.agents) ? nil : .agents
    }

    /// Whether an agent would be asked next, so that what it has said to another fetch holds for this one.
    func isForAgents(_ question: Question) -> Bool {
        space(of: question).flatMap { nextRespondent(for: question, in: $0) } == .agents
    }

    /// Rule 3: a client that does not say is not asked about connections.
    private func canAuthenticate(in space: ProtectionSpace) -> Bool {
        if let answer = target(Challenger(space)).canAuthenticate[space] { return answer }
        guard TurnSlot(space) == .connection, let subscription = plan.subscription else { return true }
        return subscription.mode == .everything || subscription.asksCanAuthenticate
    }

    /// Rule 3: once per space, and before anything that is stored is tried.
    func nextConsultation(for space: ProtectionSpace, _ context: FetchContext) -> Consultation? {
        guard let subscription = plan.subscription, subscription.mode == .classic else { return nil }
        if subscription.asksCanAuthenticate, target(Challenger(space)).canAuthenticate[space] == nil {
            return .canAuthenticate(space)
        }
        if subscription.asksUseStorage, mightUseStorage(for: space, context), storageAnswer == nil {
            return .useStorage
        }
        return nil
    }

    /// Whether anything may be read or written for this fetch, as far as is known: its client may still say no. Never where
    /// the client could have steered what is stored to somebody else (semantics rule 24).
    func mightUseStorage(for space: ProtectionSpace, _ context: FetchContext) -> Bool {
        guard plan.useStorage, !context.isLocked, storageAnswer ?? true else { return false }
        if route?.isNamedByFetch == true { return false }
        // What was kept for this machine is not for one of that name behind a proxy.
        if space.proxyType == nil, route != nil, Loopback.isLoopback(space.host), !isTunnel { return false }
        return space.proxyType != nil || outgoing.trust?.isException != true
    }

    /// Whether anything may be read or written for this fetch. Not before its client was asked, which a lock puts off.
    func mayUseStorage(for space: ProtectionSpace, _ context: FetchContext) -> Bool {
        let isAsked = plan.subscription.map { $0.mode == .classic && $0.asksUseStorage } ?? false
        return mightUseStorage(for: space, context) && (storageAnswer != nil || !isAsked)
    }

    /// Whether exceptions for certificates may be read and written for this fetch.
    func mayRememberTrust(_ context: FetchContext) -> Bool {
        let isAsked = plan.subscription.map { $0.mode == .classic && $0.asksUseStorage } ?? false
        return plan.useStorage && !context.isLocked && route?.isNamedByFetch != true && (storageAnswer ?? !isAsked)
    }

    /// What is stored may have been locked away since it was found.
    func mayUse(_ source: CredentialSource, for space: ProtectionSpace, _ context: FetchContext) -> Bool {
        switch source {
        case .session, .keyring, .ambient, .netrc: mayUseStorage(for: space, context)
        case .explicit, .url, .client, .agent: true
        }
    }

    // MARK: Turns

    func turnKey(
        for space: ProtectionSpace, _ purpose: SpaceTurns.Key.Purpose, certificate: [UInt8]? = nil,
        scope: BearerScope? = nil, _ context: FetchContext
    ) -> SpaceTurns.Key {
        let usesStorage = mayUseStorage(for: space, context)
        return SpaceTurns.Key(
            space: space, purpose: purpose, user: namedUser(at: Challenger(space)),
            client: usesStorage ? access.line : .client(client.tag), usesStorage: usesStorage, certificate: certificate,
            scope: scope)
    }

    /// `false`, and then the fetch has to wait. A fetch that asks nobody does not wait while a person is asked, and goes on
    /// without the turn (semantics rule 20).
    mutating func takeTurn(_ key: SpaceTurns.Key, _ context: inout FetchContext) -> Bool {
        let slot = TurnSlot(key.space)
        if heldTurns[slot] != key { release(.passed(declined: []), slot, &context) }
        switch context.turns.take(key, for: id, of: client, waitsForPeople: plan.interaction != .none) {
        case .taken: heldTurns[slot] = key
        case .queued: return false
        case .questionOpen: break
        }
        return true
    }

    /// Not with what belongs further on the way, so that no two fetches wait for each other (see `TurnSlot`).
    mutating func wait(
        _ question: Question, at place: SpaceTurns.WaitingPlace, _ context: inout FetchContext
    ) -> FetchStep {
        pause(.question(question), slot(of: question), at: place, &context)
    }

    /// See `wait`.
    mutating func pause(
        _ paused: Paused, _ slot: TurnSlot, at place: SpaceTurns.WaitingPlace, _ context: inout FetchContext
    ) -> FetchStep {
        for later in TurnSlot.allCases where later > slot {
            release(.passed(declined: []), later, &context)
        }
        context.turns.endTrial(by: id)
        state = .waiting(paused, at: place, since: context.now)
        return FetchStep(.wait)
    }

    mutating func release(_ outcome: SpaceTurns.Outcome, _ slot: TurnSlot, _ context: inout FetchContext) {
        guard let key = heldTurns.removeValue(forKey: slot) else { return }
        context.turns.release(key, by: id, outcome)
    }

    /// What the handler of a fetch decides holds for that fetch alone.
    mutating func release(
        _ outcome: SpaceTurns.Outcome, answeredBy respondent: Respondent, _ slot: TurnSlot,
        _ context: inout FetchContext
    ) {
        release(respondent == .handler ? .passed(declined: []) : outcome, slot, &context)
    }

    mutating func releaseAll(_ context: inout FetchContext) {
        for slot in TurnSlot.allCases { release(.passed(declined: []), slot, &context) }
    }

    /// It is not woken any more.
    func leaveQueue(_ context: inout FetchContext) {
        if case .waiting(_, let place, _) = state { context.turns.leave(id, from: place) }
    }

    /// At the end, however it came: nobody waits for this fetch any longer, and it waits for nobody.
    mutating func leave(_ context: inout FetchContext) {
        leaveQueue(&context)
        context.turns.endTrial(by: id)
        releaseAll(&context)
        context.identities.forget { $0.trust?.fetch == id || $0.holdsTransientSecret }
    }
}

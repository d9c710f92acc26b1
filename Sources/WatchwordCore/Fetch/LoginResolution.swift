internal import WatchwordProtocol

/// Answers the challenges of a server and its proxy: semantics rules 3 to 6, 13 to 15 and 20 to 22.
struct LoginResolution: Sendable {
    var search: CredentialSearch
    var outgoing = Outgoing()
    /// The question that the last connection-level login (NTLM, Negotiate) of this hop answers.
    var handshakeQuestion: Question?

    init(_ intent: FetchIntent) { search = CredentialSearch(situation: FetchSituation(intent)) }

    var intent: FetchIntent { search.situation.intent }

    // MARK: Choosing

    /// The best scheme that was not rejected: with a credential at hand, else by asking, else not at all.
    mutating func choose(_ question: Question, _ context: inout FetchContext) -> Resolution {
        guard case .login(let offers, _) = question.kind else { return .fail(.unexpectedEvent) }
        context.session.wallTime = context.environment.sinceEpoch
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned || question.deferred?.isAnswer == true,
            let step = tryDeferred(question, offers, &context)
        {
            return step
        }
        var question = question
        question.deferred = nil
        question.ask(bestChallenge(offers, context))
        guard let asked = question.asked else { return .giveUp(question) }
        let space = asked.protectionSpace(at: offers.challenger)
        if !isAbandoned, let consultation = search.situation.nextConsultation(for: space, context) {
            return .consult(consultation, question)
        }
        learnRefusals(for: asked, in: space, deferred: nil, context)
        let isAskedFirst =
            isAbandoned || search.situation.asksFirst(in: space, after: question.declined)
            || search.situation[offers.challenger].asksBeforeWeaker
        if !isAskedFirst, let step = tryWhatIsAtHand(asked, space, question, &context) { return step }
        return find(asked, space, question, isAskedFirst: isAskedFirst, &context)
    }

    /// What waited for the verdict on another fetch, for the challenge that it was an answer to.
    private mutating func tryDeferred(
        _ question: Question, _ offers: OfferList, _ context: inout FetchContext
    ) -> Resolution? {
        guard let deferred = question.deferred, let asked = question.asked else { return nil }
        let space = asked.protectionSpace(at: offers.challenger)
        learnRefusals(for: asked, in: space, deferred: deferred, context)
        guard search.situation.mayUse(deferred.source, for: space, context),
            !search.isForgotten(deferred, in: space, context),
            !search.situation[offers.challenger].hasRefused(deferred.credential, in: space),
            !search.situation[offers.challenger].isTooNarrow(deferred.credential, for: asked),
            !search.situation.consent.isRefused(search.situation.consent.use(of: deferred, in: space, context))
        else { return nil }
        var question = question
        question.deferred = nil
        return attempt(deferred, for: asked, in: space, question, &context)
    }

    /// By strength, or in the order that the configuration says; a token or a header that is at hand comes before all Digest.
    private func bestChallenge(
        _ offers: OfferList, _ context: FetchContext
    ) -> AnswerableChallenge? {
        let challenger = offers.challenger
        let open = offers.answerable.filter { challenge in
            let space = challenge.protectionSpace(at: challenger)
            guard !search.situation[challenger].hasRejected(challenge, in: space) else { return false }
            return challenge != .negotiate || search.ownCandidate(for: challenge, in: space, context) != nil
        }
        guard context.environment.schemes.order(for: challenger) == nil, let best = open.first,
            best.strength < AnswerableChallenge.strengthOfToken
        else { return open.first }
        let ready = open.first { challenge in
            switch challenge {
            case .bearer, .other: isAtHand(challenge, at: challenger, context)
            default: false
            }
        }
        return ready ?? best
    }

    private func isAtHand(
        _ challenge: AnswerableChallenge, at challenger: Challenger, _ context: FetchContext
    ) -> Bool {
        let space = challenge.protectionSpace(at: challenger)
        return search.ownCandidate(for: challenge, in: space, context) != nil
            || [
                search.acceptedCandidate(for: challenge, in: space, context),
                search.storedCandidate(for: challenge, in: space, context),
            ].contains { $0.map { search.isConsented($0, in: space, context) } ?? false }
    }

    /// The fetch's own credentials, and what the session has.
    private mutating func tryWhatIsAtHand(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ question: Question, _ context: inout FetchContext
    ) -> Resolution? {
        let accepted = search.acceptedCandidate(for: asked, in: space, context)
        if let own = search.ownCandidate(for: asked, in: space, context) {
            if let accepted, accepted.credential.isSame(as: own.credential) {
                var own = own
                own.provenAt = accepted.provenAt
                return attempt(own, for: asked, in: space, question, &context)
            }
            let key = search.situation.turnKey(for: space, .own, scope: asked.scope, context)
            guard search.situation.turns.take(key, &context) else { return .wait(question, .line(key)) }
            return attempt(own, for: asked, in: space, question, &context)
        }
        return accepted.map { attempt($0, for: asked, in: space, question, &context) }
    }

    /// One fetch after the other: what was handed over for the session, the keyring, whoever can be asked.
    private mutating func find(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ question: Question, isAskedFirst: Bool,
        _ context: inout FetchContext
    ) -> Resolution {
        let challenger = Challenger(space)
        let respondent = search.situation.nextRespondent(after: question.declined, in: space)
        guard respondent != nil || search.situation.mayUseStorage(for: space, context) && !question.declined.isAbandoned
        else {
            return .giveUp(question)
        }
        let key = search.situation.turnKey(for: space, .find, scope: asked.scope, context)
        guard search.situation.turns.take(key, &context) else { return .wait(question, .line(key)) }
        if search.situation.mayUseStorage(for: space, context), search.keyringItems(at: challenger, context) == nil,
            context.keyring.isWorthAsking(now: context.now)
        {
            search.situation[challenger].keyringItems = .init(mark: context.forgets.mark)
            return .lookUp(question, KeyringAttributes.queries(for: challenger))
        }
        var stored = search.storedCandidate(for: asked, in: space, context)
        if stored == nil {
            if let query = search.netrcQuery(for: asked, in: space, context),
                search.netrcLogins(at: challenger, context) == nil
            {
                search.situation[challenger].netrcLogins = .init(mark: context.forgets.mark)
                return .readNetrc(question, query)
            }
            stored = search.netrcCandidate(for: asked, in: space, context)
        }
        if !isAskedFirst, let stored { return attempt(stored, for: asked, in: space, question, &context) }
        guard let respondent else { return .giveUp(question) }
        var question = question
        let atHand = [
            search.ownCandidate(for: asked, in: space, context),
            search.acceptedCandidate(for: asked, in: space, context), stored,
        ]
        // Even that there is one is nobody's business who may not use it.
        question.proposed = atHand.compactMap(\.self).first { search.isConsented($0, in: space, context) }
        question.known = search.knownCredentials(for: question, asked, in: space, context)
        // What is forgotten while the question is open is not sent by an answer.
        question.proposed?.mark = context.forgets.mark
        for index in question.known.indices { question.known[index].candidate.mark = context.forgets.mark }
        let withheld =
            search.storedCandidate(for: asked, in: space, isForWeaker: true, context)
            ?? search.netrcCandidate(for: asked, in: space, isForWeaker: true, context)
        question.withholdsStored =
            stored == nil && (withheld.map { search.isConsented($0, in: space, context) } ?? false)
        return .ask(question, respondent, nil)
    }

    // MARK: Attempts

    /// Sends a credential, unless the server has not accepted it lately and another fetch has just sent it: then the verdict
    /// comes first.
    mutating func attempt(
        _ candidate: Candidate, for asked: AnswerableChallenge, in space: ProtectionSpace, _ question: Question,
        _ context: inout FetchContext
    ) -> Resolution {
        // Whoever waits for the verdict would wait for a person otherwise.
        if let use = search.situation.consent.use(of: candidate, in: space, context),
            let step = search.situation.confirm(use, of: candidate.source, question, &context)
        {
            return step
        }
        var candidate = candidate
        candidate.mark = candidate.mark ?? context.forgets.mark
        let attempt = Attempt(asked, space, candidate)
        guard beginTrial(attempt, &context) else {
            var question = question
            question.asked = asked
            question.deferred = candidate
            return .wait(question, .trial)
        }
        return send(candidate, for: asked, in: space, question, &context)
    }

    private mutating func send(
        _ candidate: Candidate, for asked: AnswerableChallenge, in space: ProtectionSpace, _ question: Question,
        _ context: inout FetchContext
    ) -> Resolution {
        if let use = search.situation.consent.use(of: candidate, in: space, context),
            let step = search.situation.confirm(use, of: candidate.source, question, &context)
        {
            return step
        }
        var attempt = Attempt(asked, space, candidate)
        if space.proxyType == nil { attempt.serverEndPoint = question.response?.serverEndPoint }
        outgoing[space.proxyType == nil ? .server : .proxy] = attempt
        if asked.isHandshake { handshakeQuestion = question }
        return .send
    }

    /// What another fetch has found out to be right; `nil` where it is not for this one.
    mutating func follow(
        _ credential: LoginCredential, from source: CredentialSource, isShared: Bool, _ question: Question,
        _ context: inout FetchContext
    ) -> Resolution? {
        guard case .login(let offers, _) = question.kind, let asked = question.asked else { return nil }
        let space = asked.protectionSpace(at: offers.challenger)
        let own = search.ownCandidate(for: asked, in: space, context)
        guard own != nil || isShared, search.situation.mayUse(own?.source ?? source, for: space, context),
            intent.access.subject == nil || own != nil || [.client, .agent].contains(source),
            !search.situation[offers.challenger].hasRefused(credential, in: space),
            !search.situation[offers.challenger].isTooNarrow(credential, for: asked),
            asked.canCarry(credential, at: offers.challenger),
            search.problem(with: credential, at: offers.challenger, context) == nil,
            own.map({ $0.credential.isSame(as: credential) }) ?? true
        else { return nil }
        var candidate = own ?? Candidate(credential: credential, source: source, home: intent.access.home)
        (candidate.provenAt, candidate.mark) = (context.now, context.forgets.mark)
        return send(candidate, for: asked, in: space, question, &context)
    }

    /// What was refused to others meanwhile counts as refused here, where it would have been tried.
    private mutating func learnRefusals(
        for asked: AnswerableChallenge, in space: ProtectionSpace, deferred: Candidate?, _ context: FetchContext
    ) {
        guard context.refusals.lastNumber > intent.lastRefusalBefore else { return }
        let challenger = Challenger(space)
        let key = search.situation.turnKey(for: space, .find, scope: asked.scope, context)
        for refusal in context.refusals.since(intent.lastRefusalBefore) where refusal.key.space == space {
            let isOwn = [search.ownCandidate(for: asked, in: space, context), deferred].contains {
                $0?.credential.isSame(as: refusal.credential) ?? false
            }
            guard refusal.key == key || isOwn, !search.situation[challenger].hasRefused(refusal.credential, in: space)
            else {
                continue
            }
            let candidate = Candidate(
                credential: refusal.credential, source: refusal.source, home: intent.access.home)
            search.situation[challenger].noteRefusal(of: Attempt(asked, space, candidate))
        }
    }
}

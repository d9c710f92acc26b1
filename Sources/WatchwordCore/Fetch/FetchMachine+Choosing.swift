internal import WatchwordProtocol

/// Choosing what to do about a challenge: semantics rules 3 to 6, 13 to 15 and 20 to 22.
extension FetchMachine {
    /// What the question needs next: a look-up, an attempt, an answer; or nothing can be done about it. Once it is abandoned,
    /// only an answer helps (security rule X1).
    mutating func choose(
        _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        switch question.kind {
        case .login(let offers, let side): return choose(question, offers, side, &context)
        case .serverTrust(let facts): return choose(question, facts, &context)
        case .clientCertificate: return chooseCertificate(question, &context)
        }
    }

    /// The best scheme that was not rejected: with a credential at hand, else by asking, else not at all.
    private mutating func choose(
        _ question: Question, _ offers: OfferList, _ side: Side, _ context: inout FetchContext
    ) -> FetchStep {
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
        guard let asked = question.asked else { return giveUp(question, &context) }
        let space = asked.protectionSpace(at: offers.challenger)
        if !isAbandoned, let consultation = nextConsultation(for: space, context) {
            return consult(consultation, then: .question(question))
        }
        learnRefusals(for: asked, in: space, deferred: nil, context)
        let isAskedFirst =
            isAbandoned || asksFirst(in: space, after: question.declined)
            || target(offers.challenger).asksBeforeWeaker
        if !isAskedFirst, let step = tryWhatIsAtHand(asked, space, question, &context) { return step }
        return find(asked, space, question, isAskedFirst: isAskedFirst, &context)
    }

    /// What waited for the verdict on another fetch, for the challenge that it was an answer to.
    private mutating func tryDeferred(
        _ question: Question, _ offers: OfferList, _ context: inout FetchContext
    ) -> FetchStep? {
        guard let deferred = question.deferred, let asked = question.asked else { return nil }
        let space = asked.protectionSpace(at: offers.challenger)
        learnRefusals(for: asked, in: space, deferred: deferred, context)
        guard mayUse(deferred.source, for: space, context), !isForgotten(deferred, in: space, context),
            !target(offers.challenger).hasRefused(deferred.credential, in: space),
            !target(offers.challenger).isTooNarrow(deferred.credential, for: asked),
            !isRefused(deferred, in: space, context)
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
            guard !target(challenger).hasRejected(challenge, in: space) else { return false }
            return challenge != .negotiate || ownCandidate(for: challenge, in: space, context) != nil
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
        return ownCandidate(for: challenge, in: space, context) != nil
            || [
                acceptedCandidate(for: challenge, in: space, context),
                storedCandidate(for: challenge, in: space, context),
            ].contains { $0.map { isConsented($0, in: space, context) } ?? false }
    }

    /// The fetch's own credentials, and what the session has.
    private mutating func tryWhatIsAtHand(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep? {
        let accepted = acceptedCandidate(for: asked, in: space, context)
        if let own = ownCandidate(for: asked, in: space, context) {
            if let accepted, accepted.credential.isSame(as: own.credential) {
                var own = own
                own.provenAt = accepted.provenAt
                return attempt(own, for: asked, in: space, question, &context)
            }
            let key = turnKey(for: space, .own, scope: asked.scope, context)
            guard takeTurn(key, &context) else { return wait(question, at: .line(key), &context) }
            return attempt(own, for: asked, in: space, question, &context)
        }
        return accepted.map { attempt($0, for: asked, in: space, question, &context) }
    }

    /// One fetch after the other: what was handed over for the session, the keyring, whoever can be asked.
    private mutating func find(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ question: Question, isAskedFirst: Bool,
        _ context: inout FetchContext
    ) -> FetchStep {
        let challenger = Challenger(space)
        let respondent = nextRespondent(for: question, in: space)
        guard respondent != nil || mayUseStorage(for: space, context) && !question.declined.isAbandoned else {
            return giveUp(question, &context)
        }
        let key = turnKey(for: space, .find, scope: asked.scope, context)
        guard takeTurn(key, &context) else { return wait(question, at: .line(key), &context) }
        if mayUseStorage(for: space, context), keyringItems(at: challenger, context) == nil,
            context.keyring.isWorthAsking(now: context.now)
        {
            targets[challenger, default: TargetRecord()].keyringItems = .init(mark: context.forgets.mark)
            state = .lookingUp(question, since: context.now)
            return FetchStep(.lookUp(KeyringAttributes.queries(for: challenger)))
        }
        var stored = storedCandidate(for: asked, in: space, context)
        if stored == nil {
            if let step = readNetrc(for: asked, in: space, question, context) { return step }
            stored = netrcCandidate(for: asked, in: space, context)
        }
        if !isAskedFirst, let stored { return attempt(stored, for: asked, in: space, question, &context) }
        guard let respondent else { return giveUp(question, &context) }
        var question = question
        let atHand = [
            ownCandidate(for: asked, in: space, context),
            acceptedCandidate(for: asked, in: space, context), stored,
        ]
        // Even that there is one is nobody's business who may not use it.
        question.proposed = atHand.compactMap(\.self).first { isConsented($0, in: space, context) }
        question.known = knownCredentials(for: question, asked, in: space, context)
        // What is forgotten while the question is open is not sent by an answer.
        question.proposed?.mark = context.forgets.mark
        for index in question.known.indices { question.known[index].candidate.mark = context.forgets.mark }
        let withheld =
            storedCandidate(for: asked, in: space, isForWeaker: true, context)
            ?? netrcCandidate(for: asked, in: space, isForWeaker: true, context)
        question.withholdsStored =
            stored == nil && (withheld.map { isConsented($0, in: space, context) } ?? false)
        return ask(question, respondent, problem: nil, &context)
    }

    // MARK: Attempts

    /// Sends a credential, unless the server has not accepted it lately and another fetch has just sent it: then the verdict
    /// comes first.
    mutating func attempt(
        _ candidate: Candidate, for asked: AnswerableChallenge, in space: ProtectionSpace, _ question: Question,
        _ context: inout FetchContext
    ) -> FetchStep {
        // Whoever waits for the verdict would wait for a person otherwise.
        if let step = confirm(candidate, in: space, question, &context) { return step }
        var candidate = candidate
        candidate.mark = candidate.mark ?? context.forgets.mark
        let attempt = Attempt(asked, space, candidate)
        guard beginTrial(attempt, &context) else {
            var question = question
            question.asked = asked
            question.deferred = candidate
            return wait(question, at: .trial, &context)
        }
        return send(candidate, for: asked, in: space, question, &context)
    }

    private mutating func send(
        _ candidate: Candidate, for asked: AnswerableChallenge, in space: ProtectionSpace, _ question: Question,
        _ context: inout FetchContext
    ) -> FetchStep {
        if let step = confirm(candidate, in: space, question, &context) { return step }
        var attempt = Attempt(asked, space, candidate)
        if space.proxyType == nil { attempt.serverEndPoint = question.response?.serverEndPoint }
        outgoing[space.proxyType == nil ? .server : .proxy] = attempt
        if asked.isHandshake { handshakeQuestion = question }
        return transfer(&context)
    }

    /// What another fetch has found out to be right.
    mutating func follow(
        _ found: SpaceTurns.Found, isShared: Bool, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        switch (found, question.kind) {
        case (.login(let credential, let source), .login(let offers, _)):
            guard let asked = question.asked else { break }
            let space = asked.protectionSpace(at: offers.challenger)
            let own = ownCandidate(for: asked, in: space, context)
            guard own != nil || isShared, mayUse(own?.source ?? source, for: space, context),
                access.subject == nil || own != nil || [.client, .agent].contains(source),
                !target(offers.challenger).hasRefused(credential, in: space),
                !target(offers.challenger).isTooNarrow(credential, for: asked),
                asked.canCarry(credential, at: offers.challenger),
                problem(with: credential, at: offers.challenger, context) == nil,
                own.map({ $0.credential.isSame(as: credential) }) ?? true
            else { break }
            var candidate = own ?? Candidate(credential: credential, source: source, home: access.home)
            (candidate.provenAt, candidate.mark) = (context.now, context.forgets.mark)
            return send(candidate, for: asked, in: space, question, &context)
        case (.trust(let decision), .serverTrust) where isShared:
            return trust(decision, question, &context)
        case (.certificate(let certificate, let source), .clientCertificate)
        where isShared && !target(server).hasRefused(certificate) && (access.subject == nil || source != .session):
            return show(certificate, source, question, &context)
        default:
            break
        }
        return choose(question, &context)
    }

    /// Somebody who was asked for another fetch leaves it at what there is.
    mutating func proceed(
        _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        switch question.kind {
        case .login:
            var question = question
            question.obstacle = nil
            return giveUp(question, &context)
        case .serverTrust(let facts): return verifyNormally(question, facts, &context)
        case .clientCertificate: return goOnWithoutCertificate(question, &context)
        }
    }

    /// Nobody has an answer: the response that challenged is the result, or what failed has failed. A server that asks for a
    /// certificate gets none.
    mutating func giveUp(
        _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        release(.passed(declined: question.declined), slot(of: question), &context)
        // What was shown and found wanting is an error, unless somebody who was asked leaves it at that.
        if case .clientCertificate = question.kind, question.problem == nil || !question.declined.isEmpty {
            // Security rule X1: the request that was held back for the question goes out without what is stored.
            if question.declined.isAbandoned { storageAnswer = false }
            return goOnWithoutCertificate(question, &context)
        }
        if let obstacle = question.obstacle { return fail(obstacle, &context) }
        switch question.outcome {
        case .response(let response): return finish(response, unanswered: unanswered(question, context), &context)
        case .failure(let failure): return fail(failure, &context)
        }
    }

    /// What was refused to others meanwhile counts as refused here, where it would have been tried.
    private mutating func learnRefusals(
        for asked: AnswerableChallenge, in space: ProtectionSpace, deferred: Candidate?, _ context: FetchContext
    ) {
        guard context.refusals.lastNumber > lastRefusalBefore else { return }
        let challenger = Challenger(space)
        let key = turnKey(for: space, .find, scope: asked.scope, context)
        for refusal in context.refusals.since(lastRefusalBefore) where refusal.key.space == space {
            let isOwn = [ownCandidate(for: asked, in: space, context), deferred].contains {
                $0?.credential.isSame(as: refusal.credential) ?? false
            }
            guard refusal.key == key || isOwn, !target(challenger).hasRefused(refusal.credential, in: space) else {
                continue
            }
            let candidate = Candidate(
                credential: refusal.credential, source: refusal.source, home: access.home)
            targets[challenger, default: TargetRecord()].noteRefusal(of: Attempt(asked, space, candidate))
        }
    }
}

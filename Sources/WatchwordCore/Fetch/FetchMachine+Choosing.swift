internal import WatchwordProtocol

/// Choosing what to do about a challenge: semantics rules 3 to 6, 13 to 15 and 20 to 22.
extension FetchMachine {
    /// What the question needs next: a look-up, an attempt, an answer; or nothing can be done about it. Once it is abandoned,
    /// only an answer helps (security rule X1).
    mutating func choose(
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        switch question.kind {
        case .login(let offers, let side): return choose(question, offers, side, environment, &memory)
        case .serverTrust(let facts): return choose(question, facts, environment, &memory)
        case .clientCertificate: return chooseCertificate(question, environment, &memory)
        }
    }

    /// The best scheme that was not rejected: with a credential at hand, else by asking, else not at all.
    private mutating func choose(
        _ question: Question, _ offers: OfferList, _ side: Side, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep {
        memory.session.wallTime = environment.sinceEpoch
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned || question.deferred?.isAnswer == true,
            let step = tryDeferred(question, offers, environment, &memory)
        {
            return step
        }
        var question = question
        question.deferred = nil
        question.ask(bestChallenge(offers, environment, memory))
        guard let asked = question.asked else { return giveUp(question, environment, &memory) }
        let space = asked.protectionSpace(at: offers.challenger)
        if !isAbandoned, let consultation = nextConsultation(for: space, memory) {
            return consult(consultation, then: .question(question))
        }
        learnRefusals(for: asked, in: space, deferred: nil, memory)
        let isAskedFirst =
            isAbandoned || asksFirst(in: space, after: question.declined)
            || target(offers.challenger).asksBeforeWeaker
        if !isAskedFirst, let step = tryWhatIsAtHand(asked, space, question, environment, &memory) { return step }
        return find(asked, space, question, isAskedFirst: isAskedFirst, environment, &memory)
    }

    /// What waited for the verdict on another fetch, for the challenge that it was an answer to.
    private mutating func tryDeferred(
        _ question: Question, _ offers: OfferList, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep? {
        guard let deferred = question.deferred, let asked = question.asked else { return nil }
        let space = asked.protectionSpace(at: offers.challenger)
        learnRefusals(for: asked, in: space, deferred: deferred, memory)
        guard mayUse(deferred.source, for: space, memory), !isForgotten(deferred, in: space, memory),
            !target(offers.challenger).hasRefused(deferred.credential, in: space),
            !target(offers.challenger).isTooNarrow(deferred.credential, for: asked),
            !isRefused(deferred, in: space, memory)
        else { return nil }
        var question = question
        question.deferred = nil
        return attempt(deferred, for: asked, in: space, question, environment, &memory)
    }

    /// By strength, or in the order that the configuration says; a token or a header that is at hand comes before all Digest.
    private func bestChallenge(
        _ offers: OfferList, _ environment: FetchEnvironment, _ memory: CredentialMemory
    ) -> AnswerableChallenge? {
        let challenger = offers.challenger
        let open = offers.answerable.filter { challenge in
            let space = challenge.protectionSpace(at: challenger)
            guard !target(challenger).hasRejected(challenge, in: space) else { return false }
            return challenge != .negotiate || ownCandidate(for: challenge, in: space, memory) != nil
        }
        guard environment.schemes.order(for: challenger) == nil, let best = open.first,
            best.strength < AnswerableChallenge.strengthOfToken
        else { return open.first }
        let ready = open.first { challenge in
            switch challenge {
            case .bearer, .other: isAtHand(challenge, at: challenger, memory, environment.now)
            default: false
            }
        }
        return ready ?? best
    }

    private func isAtHand(
        _ challenge: AnswerableChallenge, at challenger: Challenger, _ memory: CredentialMemory, _ now: Duration
    ) -> Bool {
        let space = challenge.protectionSpace(at: challenger)
        return ownCandidate(for: challenge, in: space, memory) != nil
            || [
                acceptedCandidate(for: challenge, in: space, memory, now),
                storedCandidate(for: challenge, in: space, memory, now),
            ].contains { $0.map { isConsented($0, in: space, memory, now) } ?? false }
    }

    /// The fetch's own credentials, and what the session has.
    private mutating func tryWhatIsAtHand(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ question: Question, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep? {
        let accepted = acceptedCandidate(for: asked, in: space, memory, environment.now)
        if let own = ownCandidate(for: asked, in: space, memory) {
            if let accepted, accepted.credential.isSame(as: own.credential) {
                var own = own
                own.provenAt = accepted.provenAt
                return attempt(own, for: asked, in: space, question, environment, &memory)
            }
            let key = turnKey(for: space, .own, scope: asked.scope, memory)
            guard takeTurn(key, &memory) else { return wait(question, at: .line(key), environment, &memory) }
            return attempt(own, for: asked, in: space, question, environment, &memory)
        }
        return accepted.map { attempt($0, for: asked, in: space, question, environment, &memory) }
    }

    /// One fetch after the other: what was handed over for the session, the keyring, whoever can be asked.
    private mutating func find(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ question: Question, isAskedFirst: Bool,
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        let challenger = Challenger(space)
        let respondent = nextRespondent(for: question, in: space)
        guard respondent != nil || mayUseStorage(for: space, memory) && !question.declined.isAbandoned else {
            return giveUp(question, environment, &memory)
        }
        let key = turnKey(for: space, .find, scope: asked.scope, memory)
        guard takeTurn(key, &memory) else { return wait(question, at: .line(key), environment, &memory) }
        if mayUseStorage(for: space, memory), keyringItems(at: challenger, memory) == nil,
            memory.keyring.isWorthAsking(now: environment.now)
        {
            targets[challenger, default: TargetRecord()].keyringItems = .init(mark: memory.forgets.mark)
            state = .lookingUp(question, since: environment.now)
            return FetchStep(.lookUp(KeyringAttributes.queries(for: challenger)))
        }
        var stored = storedCandidate(for: asked, in: space, memory, environment.now)
        if stored == nil {
            if let step = readNetrc(for: asked, in: space, question, environment, memory) { return step }
            stored = netrcCandidate(for: asked, in: space, environment, memory)
        }
        if !isAskedFirst, let stored { return attempt(stored, for: asked, in: space, question, environment, &memory) }
        guard let respondent else { return giveUp(question, environment, &memory) }
        var question = question
        let atHand = [
            ownCandidate(for: asked, in: space, memory),
            acceptedCandidate(for: asked, in: space, memory, environment.now), stored,
        ]
        // Even that there is one is nobody's business who may not use it.
        question.proposed = atHand.compactMap(\.self).first { isConsented($0, in: space, memory, environment.now) }
        question.known = knownCredentials(for: question, asked, in: space, memory, environment.now)
        // What is forgotten while the question is open is not sent by an answer.
        question.proposed?.mark = memory.forgets.mark
        for index in question.known.indices { question.known[index].candidate.mark = memory.forgets.mark }
        let withheld =
            storedCandidate(for: asked, in: space, isForWeaker: true, memory, environment.now)
            ?? netrcCandidate(for: asked, in: space, isForWeaker: true, environment, memory)
        question.withholdsStored =
            stored == nil && (withheld.map { isConsented($0, in: space, memory, environment.now) } ?? false)
        return ask(question, respondent, problem: nil, &memory)
    }

    // MARK: Attempts

    /// Sends a credential, unless the server has not accepted it lately and another fetch has just sent it: then the verdict
    /// comes first.
    mutating func attempt(
        _ candidate: Candidate, for asked: AnswerableChallenge, in space: ProtectionSpace, _ question: Question,
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        // Whoever waits for the verdict would wait for a person otherwise.
        if let step = confirm(candidate, in: space, question, environment, &memory) { return step }
        var candidate = candidate
        candidate.mark = candidate.mark ?? memory.forgets.mark
        let attempt = Attempt(asked, space, candidate)
        guard beginTrial(attempt, environment, &memory) else {
            var question = question
            question.asked = asked
            question.deferred = candidate
            return wait(question, at: .trial, environment, &memory)
        }
        return send(candidate, for: asked, in: space, question, environment, &memory)
    }

    private mutating func send(
        _ candidate: Candidate, for asked: AnswerableChallenge, in space: ProtectionSpace, _ question: Question,
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        if let step = confirm(candidate, in: space, question, environment, &memory) { return step }
        var attempt = Attempt(asked, space, candidate)
        if space.proxyType == nil { attempt.serverEndPoint = question.response?.serverEndPoint }
        outgoing[space.proxyType == nil ? .server : .proxy] = attempt
        if asked.isHandshake { handshakeQuestion = question }
        return transfer(environment, &memory)
    }

    /// What another fetch has found out to be right.
    mutating func follow(
        _ found: SpaceTurns.Found, isShared: Bool, _ question: Question, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep {
        switch (found, question.kind) {
        case (.login(let credential, let source), .login(let offers, _)):
            guard let asked = question.asked else { break }
            let space = asked.protectionSpace(at: offers.challenger)
            let own = ownCandidate(for: asked, in: space, memory)
            guard own != nil || isShared, mayUse(own?.source ?? source, for: space, memory),
                access.subject == nil || own != nil || [.client, .agent].contains(source),
                !target(offers.challenger).hasRefused(credential, in: space),
                !target(offers.challenger).isTooNarrow(credential, for: asked),
                asked.canCarry(credential, at: offers.challenger),
                problem(with: credential, at: offers.challenger, memory) == nil,
                own.map({ $0.credential.isSame(as: credential) }) ?? true
            else { break }
            var candidate = own ?? Candidate(credential: credential, source: source, home: access.home)
            (candidate.provenAt, candidate.mark) = (environment.now, memory.forgets.mark)
            return send(candidate, for: asked, in: space, question, environment, &memory)
        case (.trust(let decision), .serverTrust) where isShared:
            return trust(decision, question, environment, &memory)
        case (.certificate(let certificate, let source), .clientCertificate)
        where isShared && !target(server).hasRefused(certificate) && (access.subject == nil || source != .session):
            return show(certificate, source, question, environment, &memory)
        default:
            break
        }
        return choose(question, environment, &memory)
    }

    /// Somebody who was asked for another fetch leaves it at what there is.
    mutating func proceed(
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        switch question.kind {
        case .login:
            var question = question
            question.obstacle = nil
            return giveUp(question, environment, &memory)
        case .serverTrust(let facts): return verifyNormally(question, facts, environment, &memory)
        case .clientCertificate: return goOnWithoutCertificate(question, environment, &memory)
        }
    }

    /// Nobody has an answer: the response that challenged is the result, or what failed has failed. A server that asks for a
    /// certificate gets none.
    mutating func giveUp(
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        release(.passed(declined: question.declined), slot(of: question), &memory)
        // What was shown and found wanting is an error, unless somebody who was asked leaves it at that.
        if case .clientCertificate = question.kind, question.problem == nil || !question.declined.isEmpty {
            // Security rule X1: the request that was held back for the question goes out without what is stored.
            if question.declined.isAbandoned { storageAnswer = false }
            return goOnWithoutCertificate(question, environment, &memory)
        }
        if let obstacle = question.obstacle { return fail(obstacle, &memory) }
        switch question.outcome {
        case .response(let response): return finish(response, unanswered: unanswered(question, memory), &memory)
        case .failure(let failure): return fail(failure, &memory)
        }
    }

    /// What was refused to others meanwhile counts as refused here, where it would have been tried.
    private mutating func learnRefusals(
        for asked: AnswerableChallenge, in space: ProtectionSpace, deferred: Candidate?, _ memory: CredentialMemory
    ) {
        guard memory.refusals.lastNumber > lastRefusalBefore else { return }
        let challenger = Challenger(space)
        let key = turnKey(for: space, .find, scope: asked.scope, memory)
        for refusal in memory.refusals.since(lastRefusalBefore) where refusal.key.space == space {
            let isOwn = [ownCandidate(for: asked, in: space, memory), deferred].contains {
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

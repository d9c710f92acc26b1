internal import WatchwordProtocol

/// A response that challenges, and how far the search for a credential has come.
struct Question: Sendable {
    let offers: OfferList
    /// The result, should nobody want to log in.
    let response: TransferResponse
    /// The scheme in question.
    var asked: AnswerableChallenge?
    /// Who had no answer to this challenge.
    var declined: Set<Respondent> = []
    /// What was proposed with the challenge, and has not been tried.
    var proposed: Candidate?
    /// What is to be tried once the verdict on the same credential of another fetch is known.
    var deferred: Candidate?
    /// For other fetches, until the wait of now.
    var waited = Duration.zero

    init(offers: OfferList, response: TransferResponse) {
        self.offers = offers
        self.response = response
    }
}

/// Choosing what to do about a challenge: semantics rules 3 to 6, 13 to 15 and 20 to 22.
extension FetchMachine {
    /// The strongest scheme that was not rejected: with a credential at hand, else by asking, else not at all.
    mutating func choose(
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        let origin = hop.url.origin
        var question = question
        question.asked = question.offers.answerable.first { !target.hasRejected($0.protectionSpace(at: origin)) }
        guard let asked = question.asked else { return finish(question.response, nil, &memory) }
        let space = asked.protectionSpace(at: origin)
        if let consultation = nextConsultation(for: space, memory) {
            return consult(consultation, then: .question(question))
        }
        learnRefusals(for: asked, in: space, deferred: question.deferred, memory)
        if let deferred = question.deferred {
            question.deferred = nil
            if mayUse(deferred.source, memory), !target.hasRefused(deferred.credential, in: space) {
                return attempt(deferred, for: asked, in: space, question, environment, &memory)
            }
        }
        let asksFirst = plan.asksFirst && plan.subscription?.covers(space) == true
        let isAskedFirst = asksFirst && !question.declined.contains(.client)
        if !isAskedFirst, let step = tryWhatIsAtHand(asked, space, question, environment, &memory) { return step }
        return find(asked, space, question, isAskedFirst: isAskedFirst, environment, &memory)
    }

    /// The fetch's own credentials, and what the session has.
    private mutating func tryWhatIsAtHand(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ question: Question, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep? {
        let accepted = acceptedCandidate(for: asked, in: space, memory, environment.now)
        if let own = ownCandidate(for: asked, in: space) {
            if let accepted, accepted.credential.isSame(as: own.credential) {
                return transfer(Attempt(asked, space, own), environment, &memory)
            }
            let key = turnKey(for: space, .own, memory)
            guard takeTurn(key, &memory) else { return wait(question, at: .line(key), environment) }
            return attempt(own, for: asked, in: space, question, environment, &memory)
        }
        return accepted.map { transfer(Attempt(asked, space, $0), environment, &memory) }
    }

    /// One fetch after the other: what was handed over for the session, the keyring, whoever can be asked.
    private mutating func find(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ question: Question, isAskedFirst: Bool,
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        let respondent = nextRespondent(for: question, in: space)
        guard mayUseStorage(memory) || respondent != nil else { return finish(question.response, nil, &memory) }
        let key = turnKey(for: space, .find, memory)
        guard takeTurn(key, &memory) else { return wait(question, at: .line(key), environment) }
        if mayUseStorage(memory), target.keyringItems == nil, memory.keyring.isWorthAsking(now: environment.now) {
            state = .lookingUp(question)
            return FetchStep(.lookUp(KeyringAttributes.queries(for: hop.url.origin)))
        }
        let stored = storedCandidate(for: asked, in: space, memory, environment.now)
        if !isAskedFirst, let stored { return attempt(stored, for: asked, in: space, question, environment, &memory) }
        guard let respondent else { return finishUnanswered(question, &memory) }
        var question = question
        question.proposed =
            ownCandidate(for: asked, in: space)
            ?? acceptedCandidate(for: asked, in: space, memory, environment.now) ?? stored
        return ask(question, respondent, problem: nil, &memory)
    }

    /// Nobody has an answer: the response that challenged is the result.
    private mutating func finishUnanswered(_ question: Question, _ memory: inout CredentialMemory) -> FetchStep {
        release(.passed(declined: question.declined), &memory)
        return finish(question.response, nil, &memory)
    }

    // MARK: Answers

    /// One attempt with what somebody answered, unless it is known to be of no use.
    mutating func use(
        _ credential: PasswordCredential, of respondent: Respondent, for asked: AnswerableChallenge,
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        let space = asked.protectionSpace(at: hop.url.origin)
        guard asked.canCarry(credential) else {
            return ask(question, respondent, problem: .credentialNotUsable, &memory)
        }
        guard !target.hasRefused(credential, in: space) else {
            target.noteRepeatedAnswer()
            return ask(question, respondent, problem: .credentialAlreadyRefused, &memory)
        }
        let candidate = Candidate(credential: credential, source: respondent.source)
        return attempt(candidate, for: asked, in: space, question, environment, &memory)
    }

    /// Sends what no server has accepted yet, unless another fetch has just done so: then its verdict comes first.
    private mutating func attempt(
        _ candidate: Candidate, for asked: AnswerableChallenge, in space: ProtectionSpace, _ question: Question,
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard memory.turns.beginTrial(of: candidate.credential, in: space, by: id) else {
            var question = question
            question.deferred = candidate
            return wait(question, at: .trial, environment)
        }
        return transfer(Attempt(asked, space, candidate), environment, &memory)
    }

    mutating func useProposed(
        for asked: AnswerableChallenge, _ question: Question, _ respondent: Respondent,
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        let space = asked.protectionSpace(at: hop.url.origin)
        if let proposed = question.proposed, mayUse(proposed.source, memory),
            !target.hasRefused(proposed.credential, in: space)
        {
            return attempt(proposed, for: asked, in: space, question, environment, &memory)
        }
        if let refused = target.lastRefused, refused.space == space {
            return use(refused.credential, of: respondent, for: asked, question, environment, &memory)
        }
        return ask(question, respondent, problem: .nothingProposed, &memory)
    }

    /// What another fetch has found out to be right.
    mutating func follow(
        _ credential: PasswordCredential, _ source: CredentialSource, _ question: Question,
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard let asked = question.asked else { return choose(question, environment, &memory) }
        let space = asked.protectionSpace(at: hop.url.origin)
        let own = ownCandidate(for: asked, in: space)
        guard mayUse(own?.source ?? source, memory), !target.hasRefused(credential, in: space),
            asked.canCarry(credential), own.map({ $0.credential.isSame(as: credential) }) ?? true
        else { return choose(question, environment, &memory) }
        let candidate = own ?? Candidate(credential: credential, source: source)
        return transfer(Attempt(asked, space, candidate), environment, &memory)
    }

    // MARK: Asking

    private mutating func ask(
        _ question: Question, _ respondent: Respondent, problem: Challenge.AnswerProblem?,
        _ memory: inout CredentialMemory
    ) -> FetchStep {
        if problem != nil {
            rounds += 1
            guard rounds <= Limits.authenticationRounds else { return tooManyAttempts(&memory) }
        }
        guard let challenge = challenge(for: question, problem: problem, memory) else {
            return finish(question.response, nil, &memory)
        }
        state = .asking(question, respondent)
        return FetchStep(.ask(challenge, respondent))
    }

    private func nextRespondent(for question: Question, in space: ProtectionSpace) -> Respondent? {
        guard plan.interaction != .none, target.canAuthenticate[space] ?? true else { return nil }
        if plan.subscription?.covers(space) == true, !question.declined.contains(.client) { return .client }
        return question.declined.contains(.agents) ? nil : .agents
    }

    /// Rule 3: once per space, and before anything that is stored is tried.
    func nextConsultation(for space: ProtectionSpace, _ memory: CredentialMemory) -> Consultation? {
        guard let subscription = plan.subscription, subscription.mode == .classic else { return nil }
        if subscription.asksCanAuthenticate, target.canAuthenticate[space] == nil { return .canAuthenticate(space) }
        if subscription.asksUseStorage, mightUseStorage(memory), storageAnswer == nil { return .useStorage }
        return nil
    }

    /// Whether anything may be read or written for this fetch, as far as is known: its client may still say no.
    func mightUseStorage(_ memory: CredentialMemory) -> Bool {
        plan.useStorage && !memory.isLocked && (storageAnswer ?? true)
    }

    /// Whether anything may be read or written for this fetch. Not before its client was asked, which a lock puts off.
    func mayUseStorage(_ memory: CredentialMemory) -> Bool {
        let isAsked = plan.subscription.map { $0.mode == .classic && $0.asksUseStorage } ?? false
        return mightUseStorage(memory) && (storageAnswer != nil || !isAsked)
    }

    /// What is stored may have been locked away since it was found.
    private func mayUse(_ source: CredentialSource, _ memory: CredentialMemory) -> Bool {
        source != .session && source != .keyring || mayUseStorage(memory)
    }

    // MARK: Turns

    private func turnKey(
        for space: ProtectionSpace, _ purpose: SpaceTurns.Key.Purpose, _ memory: CredentialMemory
    ) -> SpaceTurns.Key {
        let usesStorage = mayUseStorage(memory)
        return SpaceTurns.Key(
            space: space, purpose: purpose, user: namedUserHere, client: usesStorage ? owner : client,
            usesStorage: usesStorage)
    }

    private mutating func takeTurn(_ key: SpaceTurns.Key, _ memory: inout CredentialMemory) -> Bool {
        if heldTurn != key { release(.passed(declined: []), &memory) }
        guard memory.turns.take(key, for: id, of: client) else { return false }
        heldTurn = key
        return true
    }

    private mutating func wait(
        _ question: Question, at place: SpaceTurns.WaitingPlace, _ environment: FetchEnvironment
    ) -> FetchStep {
        state = .waiting(question, at: place, since: environment.now)
        return FetchStep(.wait)
    }

    /// What was refused to others meanwhile counts as refused here, where it would have been tried.
    private mutating func learnRefusals(
        for asked: AnswerableChallenge, in space: ProtectionSpace, deferred: Candidate?, _ memory: CredentialMemory
    ) {
        guard memory.refusals.lastNumber > lastRefusalBefore else { return }
        let key = turnKey(for: space, .find, memory)
        for refusal in memory.refusals.since(lastRefusalBefore) where refusal.key.space == space {
            let isOwn = [ownCandidate(for: asked, in: space), deferred].contains {
                $0?.credential.isSame(as: refusal.credential) ?? false
            }
            guard refusal.key == key || isOwn, !target.hasRefused(refusal.credential, in: space) else { continue }
            let candidate = Candidate(credential: refusal.credential, source: refusal.source)
            target.noteRefusal(of: Attempt(asked, space, candidate))
        }
    }

    mutating func release(_ outcome: SpaceTurns.Outcome, _ memory: inout CredentialMemory) {
        guard let key = heldTurn else { return }
        heldTurn = nil
        memory.turns.release(key, by: id, outcome)
    }

    /// At the end, however it came: nobody waits for this fetch any longer, and it waits for nobody.
    mutating func leave(_ memory: inout CredentialMemory) {
        if case .waiting(_, let place, _) = state { memory.turns.leave(id, from: place) }
        memory.turns.endTrial(by: id)
        release(.passed(declined: []), &memory)
    }
}

internal import WatchwordProtocol

/// Answers the challenges of a server and its proxy: SEMANTICS rules 3 to 6, 13 to 15 and 20 to 22.
struct LoginResolution: Sendable {
    var outgoing = RequestLogins()
    /// When the last request was sent.
    var sentAt = Duration.zero
    /// The question that the last connection-level login (NTLM, Negotiate) of this hop answers.
    @IndirectOptional var handshakeQuestion: Question?
    /// The question that a login answers which the server has answered without a challenge before.
    @IndirectOptional var withheldQuestion: Question?

    // MARK: Choosing

    /// Chooses the best scheme that was not rejected; then tries an available credential, asks a respondent, or ends
    /// the question.
    mutating func choose(_ question: Question, _ hop: inout HopState, _ context: inout FetchContext) -> Resolution {
        guard case .login(let offers, _) = question.kind else { return .fail(.unexpectedEvent) }
        if question.isRenewal { return finishRenewal(question, &hop, &context) }
        context.session.wallTime = context.environment.sinceEpoch
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned || question.deferred?.isAnswer == true,
            let step = tryDeferred(question, offers, &hop, &context)
        {
            return step
        }
        var question = question
        question.deferred = nil
        question.ask(bestChallenge(offers, hop, context))
        guard let asked = question.asked else { return .endUnanswered(question) }
        let space = asked.protectionSpace(at: offers.challenger)
        if !isAbandoned, let consultation = hop.nextConsultation(for: space, context) {
            return .consult(consultation, question)
        }
        importRefusals(for: asked, in: space, deferred: nil, &hop, context)
        let isAskedFirst =
            // guard: silence-sends-nothing
            isAbandoned || hop.asksFirst(in: space, after: question.declined)
            || hop[offers.challenger].promptsBeforeDowngrade
        if !isAskedFirst, let step = tryAvailableCredential(asked, space, question, &hop, &context) { return step }
        return find(asked, space, question, isAskedFirst: isAskedFirst, &hop, &context)
    }

    /// Tries the credential that was deferred until the verdict on another fetch's attempt, for the challenge for which
    /// it was chosen.
    private mutating func tryDeferred(
        _ question: Question, _ offers: OfferList, _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution? {
        guard let deferred = question.deferred, let asked = question.asked else { return nil }
        let space = asked.protectionSpace(at: offers.challenger)
        importRefusals(for: asked, in: space, deferred: deferred, &hop, context)
        guard hop.mayUse(deferred.source, for: space, context),
            !hop.isForgotten(deferred, in: space, context),
            !hop[offers.challenger].hasRefused(deferred.credential, in: space),
            !hop[offers.challenger].tokens.isTooNarrow(deferred.credential, for: asked),
            !hop.consent.isRefused(hop.consent.use(of: deferred, in: space, context))
        else { return nil }
        var question = question
        question.deferred = nil
        return attempt(deferred, for: asked, in: space, question, &hop, &context)
    }

    /// Returns the best challenge that was not rejected, by the configured order or else by strength. Without a
    /// configured order, a scheme for which a token or header is available takes precedence over Digest and weaker
    /// schemes.
    private func bestChallenge(
        _ offers: OfferList, _ hop: HopState, _ context: FetchContext
    ) -> AnswerableChallenge? {
        let challenger = offers.challenger
        let open = offers.answerable.filter { challenge in
            let space = challenge.protectionSpace(at: challenger)
            guard !hop[challenger].hasRejected(challenge, in: space) else { return false }
            return challenge != .negotiate || hop.ownCandidate(for: challenge, in: space, context) != nil
        }
        guard context.environment.rules.schemes.order(for: challenger) == nil, let best = open.first,
            best.strength < AnswerableChallenge.strengthOfToken
        else { return open.first }
        let ready = open.first { challenge in
            switch challenge {
            case .bearer, .other: isAvailable(challenge, at: challenger, hop, context)
            default: false
            }
        }
        return ready ?? best
    }

    private func isAvailable(
        _ challenge: AnswerableChallenge, at challenger: Challenger, _ hop: HopState, _ context: FetchContext
    ) -> Bool {
        let space = challenge.protectionSpace(at: challenger)
        return hop.ownCandidate(for: challenge, in: space, context) != nil
            || hop.tokenRule(for: challenge, in: space, context) != nil
            || [
                hop.acceptedCandidate(for: challenge, in: space, context),
                hop.storedCandidate(for: challenge, in: space, context),
            ].contains { $0.map { hop.isConsented($0, in: space, context) } ?? false }
    }

    /// Tries the fetch's own credential; without one, an accepted credential of the session.
    private mutating func tryAvailableCredential(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ question: Question, _ hop: inout HopState,
        _ context: inout FetchContext
    ) -> Resolution? {
        let accepted = hop.acceptedCandidate(for: asked, in: space, context)
        if let own = hop.ownCandidate(for: asked, in: space, context) {
            if let accepted, accepted.credential.isSame(as: own.credential) {
                var own = own
                own.provenAt = accepted.provenAt
                return attempt(own, for: asked, in: space, question, &hop, &context)
            }
            let key = hop.queueKey(for: space, .own, scope: asked.scope, context)
            guard hop.leases.take(key, &context) else { return .wait(question, .queue(key)) }
            return attempt(own, for: asked, in: space, question, &hop, &context)
        }
        return accepted.map { attempt($0, for: asked, in: space, question, &hop, &context) }
    }

    /// Searches the staged credentials, the keyring and the netrc file, then asks a respondent. In each queue, only one
    /// fetch at a time does so.
    private mutating func find(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ question: Question, isAskedFirst: Bool,
        _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        let challenger = Challenger(space)
        let respondent = hop.nextRespondent(after: question.declined, in: space)
        guard
            respondent != nil || hop.allowsStorageNow(for: space, context) && !question.declined.isAbandoned
        else {
            return .endUnanswered(question)
        }
        let key = hop.queueKey(for: space, .find, scope: asked.scope, context)
        guard hop.leases.take(key, &context) else { return .wait(question, .queue(key)) }
        if hop.allowsStorageNow(for: space, context), hop.keyringItems(at: challenger, context) == nil,
            context.keyring.shouldQuery(now: context.now)
        {
            hop[challenger].keyringItems = .init(mark: context.forgets.mark)
            return .lookUp(question, KeyringAttributes.queries(for: challenger))
        }
        var stored = hop.storedCandidate(for: asked, in: space, context)
        if stored == nil {
            if let query = hop.netrcQuery(for: asked, in: space, context),
                hop.netrcLogins(at: challenger, context) == nil
            {
                hop[challenger].netrcLogins = .init(mark: context.forgets.mark)
                return .readNetrc(question, query)
            }
            stored = hop.netrcCandidate(for: asked, in: space, context)
        }
        if !isAskedFirst, let stored { return attempt(stored, for: asked, in: space, question, &hop, &context) }
        if !isAskedFirst, let step = obtainToken(for: asked, in: space, question, from: respondent, &hop, &context) {
            return step
        }
        guard let respondent else { return .endUnanswered(question) }
        var question = question
        let atHand = [
            hop.ownCandidate(for: asked, in: space, context),
            hop.acceptedCandidate(for: asked, in: space, context), stored,
        ]
        // A program without consent must not even learn that a stored credential exists.
        // guard: consent-proposal
        question.proposed = atHand.compactMap(\.self).first { hop.isConsented($0, in: space, context) }
        question.known = hop.knownCredentials(for: question, asked, in: space, context)
        // With the mark, an answer cannot use a credential that was forgotten while the question was open.
        question.proposed?.mark = context.forgets.mark
        for index in question.known.indices { question.known[index].candidate.mark = context.forgets.mark }
        let withheld =
            hop.storedCandidate(for: asked, in: space, isForWeaker: true, context)
            ?? hop.netrcCandidate(for: asked, in: space, isForWeaker: true, context)
        question.withholdsStored =
            stored == nil && (withheld.map { hop.isConsented($0, in: space, context) } ?? false)
        return .ask(question, respondent, nil)
    }

    // MARK: Attempts

    /// Sends a credential. If others have just sent it and have no verdict yet, the fetch may have to wait for one.
    mutating func attempt(
        _ candidate: Candidate, for asked: AnswerableChallenge, in space: ProtectionSpace, _ question: Question,
        _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        // Consent is requested before the attempt begins. Otherwise fetches that wait for its verdict would wait for a
        // person.
        if let step = hop.confirm(candidate, in: space, question, &context) { return step }
        var candidate = candidate
        candidate.mark = candidate.mark ?? context.forgets.mark
        let attempt = Attempt(asked, space, candidate)
        guard beginAttempt(attempt, hop, &context) else {
            var question = question
            question.asked = asked
            question.deferred = candidate
            return .wait(question, .attempt)
        }
        let isWithheld = candidate.source == .session && hop.withheldAttempt(at: attempt.challenger, context) != nil
        withheldQuestion = isWithheld ? question : nil
        return send(candidate, for: asked, in: space, question, hop)
    }

    private mutating func send(
        _ candidate: Candidate, for asked: AnswerableChallenge, in space: ProtectionSpace, _ question: Question,
        _ hop: HopState
    ) -> Resolution {
        var candidate = candidate
        candidate.steering = hop.steering(to: Challenger(space))
        var attempt = Attempt(asked, space, candidate)
        // guard: ticket-bound
        if space.proxyType == nil { attempt.serverEndPoint = question.response?.serverEndPoint }
        outgoing[space.proxyType == nil ? .server : .proxy] = attempt
        if asked.isHandshake { handshakeQuestion = question }
        return .send
    }

    /// Sends a credential that was accepted for another fetch. Returns `nil` if this fetch cannot use it.
    mutating func follow(
        _ credential: LoginCredential, from source: CredentialSource, isShared: Bool, _ question: Question,
        _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution? {
        guard let asked = question.asked,
            var candidate = candidate(with: credential, from: source, isShared: isShared, question, hop, context)
        else { return nil }
        let space = asked.protectionSpace(at: hop.challenger(of: question))
        candidate.provenAt =
            context.session.provenAt(credential, for: space, owner: candidate.partition) ?? context.now
        return attempt(candidate, for: asked, in: space, question, &hop, &context)
    }

    /// Returns the credential that another fetch has sent, without a verdict so far, for this fetch to send; `nil` if it
    /// cannot.
    func unproven(
        _ trial: AuthenticationQueues.Trial, _ question: Question, _ hop: HopState, _ context: FetchContext
    ) -> Candidate? {
        guard let asked = question.asked else { return nil }
        let own = hop.ownCandidate(for: asked, in: trial.login.space, context)
        var candidate = candidate(
            with: own?.credential ?? trial.login.credential, from: trial.source, isShared: true, question, hop, context)
        candidate?.mark = context.forgets.mark
        return candidate
    }

    /// Returns the candidate for a credential of another fetch; `nil` if this fetch cannot use it.
    private func candidate(
        with credential: LoginCredential, from source: CredentialSource, isShared: Bool, _ question: Question,
        _ hop: HopState, _ context: FetchContext
    ) -> Candidate? {
        guard case .login(let offers, _) = question.kind, let asked = question.asked else { return nil }
        let space = asked.protectionSpace(at: offers.challenger)
        let own = hop.ownCandidate(for: asked, in: space, context)
        guard own != nil || isShared, hop.mayUse(own?.source ?? source, for: space, context),
            hop.fetch.access.subject == nil || own != nil || [.client, .agent].contains(source),
            !hop[offers.challenger].hasRefused(credential, in: space),
            !hop[offers.challenger].tokens.isTooNarrow(credential, for: asked),
            asked.canCarry(credential, at: offers.challenger),
            own != nil || !hop.isDowngrade(asked, offers.challenger, context),
            hop.problem(with: credential, at: offers.challenger, context) == nil,  // guard: waiting-fetch-path
            own != nil || [.client, .agent].contains(source)
                || !hop.isNarrowerStored(than: credential, in: space, context),
            own.map({ $0.credential.isSame(as: credential) }) ?? true
        else { return nil }
        return own ?? Candidate(credential: credential, source: source, partition: hop.fetch.access.partition)
    }

    /// Adds to the record of this fetch the refusals that other fetches have received since it started, for credentials
    /// that it would try as well.
    private mutating func importRefusals(
        for asked: AnswerableChallenge, in space: ProtectionSpace, deferred: Candidate?, _ hop: inout HopState,
        _ context: FetchContext
    ) {
        guard context.refusals.lastNumber > hop.fetch.refusalBaseline else { return }
        let challenger = Challenger(space)
        let key = hop.queueKey(for: space, .find, scope: asked.scope, context)
        for refusal in context.refusals.since(hop.fetch.refusalBaseline, at: challenger)
        where refusal.key.space == space {
            let isOwn = [hop.ownCandidate(for: asked, in: space, context), deferred].contains {
                $0?.credential.isSame(as: refusal.credential) ?? false
            }
            guard refusal.key == key || isOwn && refusal.key.steering == key.steering,
                !hop[challenger].hasRefused(refusal.credential, in: space)
            else {
                continue
            }
            let candidate = Candidate(
                credential: refusal.credential, source: refusal.source, partition: hop.fetch.access.partition)
            hop[challenger].recordRefusal(of: Attempt(asked, space, candidate))
        }
    }
}

internal import WatchwordProtocol

/// Decides whether a server's certificate is accepted: SEMANTICS rules 11, 13, 20 and 24; SECURITY-RULES C7 to C9.
struct ServerTrustResolution: Sendable {
    /// The current decision; `nil` if the certificate is verified normally.
    private(set) var decision: TrustDecision?
    /// The state of the forget log when the question was asked.
    private var mark: ForgetLog.Mark?

    /// Prepares a new hop. A decision made for this fetch applies only while the origin stays the same.
    mutating func enter(from previous: Origin?, _ hop: inout HopState, _ context: FetchContext) {
        let fetch = hop.fetch
        guard hop.chain.isSecure else { return decide(nil, &hop) }
        if previous == hop.chain.origin, decision?.fetch == fetch.id { return }
        if let pinned = fetch.pinnedKey {
            // A pinned certificate is not verified, so it counts as an exception.
            let pin = TrustDecision(spkiSha256: pinned, isException: true, persistence: .none, fetch: fetch.id)
            decide(pin, &hop)
        } else {
            decide(fetch.trust == .onFailure ? remembered(hop, context) : nil, &hop)
        }
    }

    private mutating func decide(_ decision: TrustDecision?, _ hop: inout HopState) {
        self.decision = decision
        hop.exception = decision.flatMap { $0.isException ? $0 : nil }
    }

    /// Looks up a remembered decision again, because it may have been forgotten by hand since then.
    mutating func refresh(_ hop: inout HopState, _ context: FetchContext) {
        if let trust = decision, trust.fetch == nil { decide(remembered(hop, context), &hop) }
    }

    /// Returns the remembered exception for this server.
    func remembered(_ hop: HopState, _ context: FetchContext) -> TrustDecision? {
        guard hop.mayRememberTrust(context), hop.fetch.acceptsExceptions else { return nil }
        let owner = hop.fetch.access.certificatePartition
        return context.decisions.trustedKey(at: hop.chain.origin, owner: owner).map { key in
            TrustDecision(
                spkiSha256: key.spkiSha256, isException: true,
                persistence: key.isPermanent ? .permanent : .forSession, fetch: nil)
        }
    }

    mutating func choose(
        _ question: Question, _ facts: ServerTrustFacts, _ hop: inout HopState,
        _ context: inout FetchContext
    ) -> Resolution {
        guard let leaf = facts.chain.first?.spkiSha256, !leaf.isEmpty else {
            return .endUnanswered(question)
        }
        guard hop.fetch.acceptsExceptions else {
            return verifyNormally(question, facts, &hop, &context)
        }
        if hop.fetch.pinnedKey != nil { return .endUnanswered(question) }
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned, let step = useRemembered(facts, leaf, question, &hop, &context) { return step }
        let space = hop.space(.serverTrust)
        if !isAbandoned, let consultation = hop.nextConsultation(for: space, context) {
            return .consult(consultation, question)
        }
        guard let respondent = hop.nextRespondent(after: question.declined, in: space) else {
            return isAbandoned
                ? .endUnanswered(question) : verifyNormally(question, facts, &hop, &context)
        }
        // With `tls.trust: "always"` the client checks every certificate itself.
        if hop.fetch.trust == .onFailure {
            let key = hop.queueKey(for: space, .find, certificate: facts.chain.first?.sha256, context)
            guard hop.leases.take(key, &context) else { return .wait(question, .queue(key)) }
        }
        return .ask(marked(question, facts, hop, context), respondent, nil)
    }

    /// Uses the remembered decision if it is for this key; otherwise drops it if the current certificate verifies.
    private mutating func useRemembered(
        _ facts: ServerTrustFacts, _ leaf: [UInt8], _ question: Question, _ hop: inout HopState,
        _ context: inout FetchContext
    ) -> Resolution? {
        guard hop.fetch.trust == .onFailure, let known = remembered(hop, context) else { return nil }
        if known.spkiSha256 == leaf, decision != known {
            decide(known, &hop)
            return .send
        }
        if facts.problems.isEmpty {
            decide(nil, &hop)
            return transferVerified(question, &hop, &context)
        }
        return nil
    }

    /// Forgets the decision about a previous certificate, since the current one verifies.
    private mutating func transferVerified(
        _ question: Question, _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        if context.decisions.forgetTrust(at: hop.chain.origin) {
            context.add(.announce(CredentialChange(.forgotten, hop.space(.serverTrust))))
            context.add(.storeTrust(context.decisions.permanentKeys))
        }
        return .send
    }

    /// Returns the question with the problem `changed` added if another key was accepted before.
    private func marked(
        _ question: Question, _ facts: ServerTrustFacts, _ hop: HopState, _ context: FetchContext
    ) -> Question {
        guard let known = remembered(hop, context), known.spkiSha256 != facts.chain.first?.spkiSha256 else {
            return question
        }
        var facts = facts
        facts.problems.insert(.changed)
        var marked = Question(.serverTrust(facts), question.outcome)
        marked.declined = question.declined
        return marked
    }

    private static func decision(
        _ leaf: [UInt8], _ facts: ServerTrustFacts, _ persistence: Persistence, for fetch: FetchID
    ) -> TrustDecision {
        // A certificate that verifies is not an exception, even if a respondent has accepted it.
        let isException = !facts.problems.subtracting([.changed]).isEmpty
        return TrustDecision(spkiSha256: leaf, isException: isException, persistence: persistence, fetch: fetch)
    }

    mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, about facts: ServerTrustFacts, _ question: Question,
        _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        guard case .credential(let credential) = answer else {
            hop.leases.release(
                answer == .reject ? .rejected(by: respondent) : .proceed, answeredBy: respondent, .connection, &context)
            if answer == .reject { return distrust(question, facts, &hop, &context) }
            return verifyNormally(question, facts, &hop, &context)
        }
        guard case .trust(let trust) = credential else {
            return .ask(question, respondent, .credentialOfWrongType)
        }
        // guard: trust-fingerprint
        guard let leaf = facts.chain.first?.spkiSha256, Hexadecimal.bytes(trust.spkiSha256) == leaf else {
            return .ask(question, respondent, .fingerprintWrong)
        }
        let isTooLong = trust.persistence == .permanent && !hop.fetch.mayTrustPermanently(respondent.source)
        let persistence = isTooLong ? .forSession : trust.persistence
        let decision = Self.decision(leaf, facts, persistence, for: hop.fetch.id)
        let space = hop.space(.serverTrust)
        hop.audit(.trustAccepted, space, nil, respondent.source, persistence, &context)
        let isCurrent = question.mark.map { context.forgets.isCurrent($0, for: space) } ?? true
        hop.leases.release(isCurrent ? .accepted(.trust(decision)) : .passed(declined: []), .connection, &context)
        return self.trust(decision, question, &hop, &context)
    }

    /// Fails the fetch after a respondent has rejected the certificate. With `tls.trust: "always"`, that can be one
    /// that verifies.
    mutating func distrust(
        _ question: Question, _ facts: ServerTrustFacts, _ hop: inout HopState,
        _ context: inout FetchContext
    ) -> Resolution {
        guard facts.problems.subtracting([.changed]).isEmpty else { return .endUnanswered(question) }
        hop.leases.release(.passed(declined: question.declined), .connection, &context)
        let text =
            "the certificate of \(hop.chain.origin.text) verifies, but was rejected in answer to the challenge"
        return .fail(FetchFailure(.serverNotTrusted, text))
    }

    /// Accepts the certificate only if it verifies (SEMANTICS rules 11 and 13).
    mutating func verifyNormally(
        _ question: Question, _ facts: ServerTrustFacts, _ hop: inout HopState,
        _ context: inout FetchContext
    ) -> Resolution {
        guard facts.problems.subtracting([.changed]).isEmpty, let leaf = facts.chain.first?.spkiSha256 else {
            return .endUnanswered(question)
        }
        hop.leases.release(.passed(declined: question.declined), .connection, &context)
        return trust(Self.decision(leaf, facts, .none, for: hop.fetch.id), question, &hop, &context)
    }

    /// Continues with this decision. It applies to this fetch alone until a response has been received.
    mutating func trust(
        _ decision: TrustDecision, _ question: Question, _ hop: inout HopState,
        _ context: inout FetchContext
    ) -> Resolution {
        var decision = decision
        decision.fetch = hop.fetch.id
        decide(decision, &hop)
        mark = question.mark ?? context.forgets.mark
        return .send
    }

    /// Remembers an exception, if its persistence allows, after a response was received on a connection that relies on
    /// it.
    func recordResponse(_ hop: HopState, _ context: inout FetchContext) {
        guard let trust = decision, trust.fetch != nil, trust.isException, trust.persistence != .none else { return }
        remember(trust, hop, &context)
    }

    /// Remembers an exception with the persistence that the answer has named.
    private func remember(_ trust: TrustDecision, _ hop: HopState, _ context: inout FetchContext) {
        guard hop.mayRememberTrust(context), let mark,
            context.forgets.isCurrent(mark, for: hop.space(.serverTrust))  // guard: forget-trust
        else { return }
        let key = TrustedKey(origin: hop.chain.origin, spkiSha256: trust.spkiSha256)
        let isPermanent = trust.persistence == .permanent
        let owner = hop.fetch.access.certificatePartition
        let known = context.decisions.trustedKey(at: key.origin, owner: owner)
        if let known, known.spkiSha256 == key.spkiSha256, known.isPermanent || !isPermanent { return }
        context.decisions.trust(key, isPermanent: isPermanent, owner: owner, now: context.now)
        context.add(.announce(CredentialChange(.stored, hop.space(.serverTrust))))
        if isPermanent || known?.isPermanent == true { context.add(.storeTrust(context.decisions.permanentKeys)) }
    }
}

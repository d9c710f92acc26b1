internal import WatchwordProtocol

/// Whether a server's certificate is good enough: semantics rules 11, 13, 20 and 24; security rules C7 to C9.
extension FetchMachine {
    mutating func choose(
        _ question: Question, _ facts: ServerTrustFacts, _ context: inout FetchContext
    ) -> FetchStep {
        guard let leaf = facts.chain.first?.spkiSha256, !leaf.isEmpty else {
            return giveUp(question, &context)
        }
        if plan.pinnedKey != nil { return giveUp(question, &context) }
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned, let step = useRemembered(facts, leaf, question, &context) { return step }
        let space = server.space(realm: nil, .serverTrust)
        if !isAbandoned, let consultation = nextConsultation(for: space, context) {
            return consult(consultation, then: .question(question))
        }
        guard let respondent = nextRespondent(for: question, in: space) else {
            return isAbandoned
                ? giveUp(question, &context) : verifyNormally(question, facts, &context)
        }
        // Who pins looks at every certificate itself.
        if plan.trust == .onFailure {
            let key = turnKey(for: space, .find, certificate: facts.chain.first?.sha256, context)
            guard takeTurn(key, &context) else { return wait(question, at: .line(key), &context) }
        }
        return ask(marked(question, facts, context), respondent, problem: nil, &context)
    }

    /// Somebody has accepted this key here before; or another one, and the server has a better certificate now.
    private mutating func useRemembered(
        _ facts: ServerTrustFacts, _ leaf: [UInt8], _ question: Question, _ context: inout FetchContext
    ) -> FetchStep? {
        guard plan.trust == .onFailure, let known = rememberedTrust(context) else { return nil }
        if known.spkiSha256 == leaf, outgoing.trust != known {
            outgoing.trust = known
            return transfer(&context)
        }
        if facts.problems.isEmpty {
            outgoing.trust = nil
            return transferVerified(question, &context)
        }
        return nil
    }

    /// The certificate verifies: what was remembered about an older one has had its day.
    private mutating func transferVerified(
        _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        if context.decisions.forgetTrust(at: hop.url.origin) {
            context.add(.changed(CredentialChange(.forgotten, server.space(realm: nil, .serverTrust))))
            context.add(.keepTrust(context.decisions.permanentKeys))
        }
        return transfer(&context)
    }

    /// Says that the certificate is not the one that was accepted before.
    private func marked(_ question: Question, _ facts: ServerTrustFacts, _ context: FetchContext) -> Question {
        guard let known = rememberedTrust(context), known.spkiSha256 != facts.chain.first?.spkiSha256 else {
            return question
        }
        var facts = facts
        facts.problems.insert(.changed)
        var marked = Question(.serverTrust(facts), question.outcome)
        marked.declined = question.declined
        return marked
    }

    private func decision(
        _ leaf: [UInt8], _ facts: ServerTrustFacts, _ persistence: Persistence
    ) -> TrustDecision {
        // A certificate that verifies is no exception, whoever looked at it.
        let isException = !facts.problems.subtracting([.changed]).isEmpty
        return TrustDecision(spkiSha256: leaf, isException: isException, persistence: persistence, fetch: id)
    }

    mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, about facts: ServerTrustFacts, _ question: Question,
        _ context: inout FetchContext
    ) -> FetchStep {
        guard case .credential(let credential) = answer else {
            release(
                answer == .reject ? .rejected(by: respondent) : .proceed, answeredBy: respondent, .connection, &context)
            if answer == .reject { return distrust(question, facts, &context) }
            return verifyNormally(question, facts, &context)
        }
        guard case .trust(let trust) = credential else {
            return ask(question, respondent, problem: .credentialOfWrongType, &context)
        }
        guard let leaf = facts.chain.first?.spkiSha256, Hexadecimal.bytes(trust.spkiSha256) == leaf else {
            return ask(question, respondent, problem: .fingerprintWrong, &context)
        }
        let isTooLong = trust.persistence == .permanent && !mayKeepForGood(respondent.source)
        let persistence = isTooLong ? .forSession : trust.persistence
        let decision = decision(leaf, facts, persistence)
        let space = server.space(realm: nil, .serverTrust)
        note(.trustAccepted, space, nil, respondent.source, persistence, &context)
        let isCurrent = question.mark.map { context.forgets.isCurrent($0, for: space) } ?? true
        release(isCurrent ? .accepted(.trust(decision)) : .passed(declined: []), .connection, &context)
        return self.trust(decision, question, &context)
    }

    /// Whoever looked at the certificate does not take it, even if it verifies: with `tls.trust: "always"` that is what it is
    /// asked for.
    mutating func distrust(
        _ question: Question, _ facts: ServerTrustFacts, _ context: inout FetchContext
    ) -> FetchStep {
        guard facts.problems.subtracting([.changed]).isEmpty else { return giveUp(question, &context) }
        release(.passed(declined: question.declined), .connection, &context)
        let text = "the certificate of \(hop.url.origin.text) verifies, and was rejected in answer to the challenge"
        return fail(FetchFailure(.serverNotTrusted, text), &context)
    }

    /// Rules 11 and 13: a certificate that verifies is good enough, and any other is not.
    mutating func verifyNormally(
        _ question: Question, _ facts: ServerTrustFacts, _ context: inout FetchContext
    ) -> FetchStep {
        guard facts.problems.subtracting([.changed]).isEmpty, let leaf = facts.chain.first?.spkiSha256 else {
            return giveUp(question, &context)
        }
        release(.passed(declined: question.declined), .connection, &context)
        return trust(decision(leaf, facts, .none), question, &context)
    }

    /// Goes on with this certificate, which holds for this fetch alone, until its response has come.
    mutating func trust(
        _ decision: TrustDecision, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        var decision = decision
        decision.fetch = id
        outgoing.trust = decision
        outgoing.trustMark = question.mark ?? context.forgets.mark
        return transfer(&context)
    }

    /// What is stored does not flow over an exception (rule 24), nor past a lock: not even what was on its way.
    mutating func dropStored(_ context: inout FetchContext) {
        for side in Side.allCases {
            guard let attempt = outgoing[side],
                !mayUse(attempt.source, for: attempt.space, context) || !isConsented(attempt, context)
                    || isStored(attempt.source) && !isCurrent(attempt, context)
                    || isOfFormerNetrc(attempt.source, since: attempt.mark, context)
            else { continue }
            outgoing[side] = nil
            context.turns.endTrial(by: id, in: attempt.space)
        }
        // What is remembered may have been forgotten by hand meanwhile.
        if let trust = outgoing.trust, trust.fetch == nil { outgoing.trust = rememberedTrust(context) }
        let space = server.space(realm: nil, .clientCertificate)
        guard case .certificate(let shown, .session) = outgoing.certificate else { return }
        let known = rememberedCertificate(context)
        let isCurrent = known.map { $0.certificate == shown && isCertificateConsented(home: $0.home, context) }
        if isCurrent != true || !mayUseStorage(for: space, context) { outgoing.certificate = .undecided }
    }
}

internal import WatchwordProtocol

/// Whether a server's certificate is good enough: semantics rules 11, 13, 20 and 24; security rules C7 to C9.
struct ServerTrustResolution: Sendable {
    /// The current decision; `nil` if the certificate is verified as usual.
    private(set) var decision: TrustDecision?
    /// The state of the forget log when the question was asked.
    private var mark: ForgetLog.Mark?

    /// A new hop. A decision that somebody made for this fetch goes with it to the same origin only.
    mutating func enter(from previous: Origin?, _ situation: inout FetchSituation, _ context: FetchContext) {
        let intent = situation.intent
        guard situation.chain.isSecure else { return decide(nil, &situation) }
        if previous == situation.chain.origin, decision?.fetch == intent.id { return }
        if let pinned = intent.plan.pinnedKey {
            // Nobody has looked at what else may be wrong with it.
            let pin = TrustDecision(spkiSha256: pinned, isException: true, persistence: .none, fetch: intent.id)
            decide(pin, &situation)
        } else {
            decide(intent.plan.trust == .onFailure ? remembered(situation, context) : nil, &situation)
        }
    }

    private mutating func decide(_ decision: TrustDecision?, _ situation: inout FetchSituation) {
        self.decision = decision
        situation.isOverException = decision?.isException == true
    }

    /// What is remembered may have been forgotten by hand meanwhile.
    mutating func refresh(_ situation: inout FetchSituation, _ context: FetchContext) {
        if let trust = decision, trust.fetch == nil { decide(remembered(situation, context), &situation) }
    }

    /// Returns the remembered exception for this server.
    func remembered(_ situation: FetchSituation, _ context: FetchContext) -> TrustDecision? {
        guard situation.mayRememberTrust(context) else { return nil }
        return context.decisions.trustedKey(at: situation.chain.origin, owner: situation.intent.access.home).map {
            key in
            TrustDecision(
                spkiSha256: key.spkiSha256, isException: true,
                persistence: key.isPermanent ? .permanent : .forSession, fetch: nil)
        }
    }

    mutating func choose(
        _ question: Question, _ facts: ServerTrustFacts, _ situation: inout FetchSituation,
        _ context: inout FetchContext
    ) -> Resolution {
        guard let leaf = facts.chain.first?.spkiSha256, !leaf.isEmpty else {
            return .giveUp(question)
        }
        if situation.intent.plan.pinnedKey != nil { return .giveUp(question) }
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned, let step = useRemembered(facts, leaf, question, &situation, &context) { return step }
        let space = situation.space(.serverTrust)
        if !isAbandoned, let consultation = situation.nextConsultation(for: space, context) {
            return .consult(consultation, question)
        }
        guard let respondent = situation.nextRespondent(after: question.declined, in: space) else {
            return isAbandoned
                ? .giveUp(question) : verifyNormally(question, facts, &situation, &context)
        }
        // Who pins looks at every certificate itself.
        if situation.intent.plan.trust == .onFailure {
            let key = situation.turnKey(for: space, .find, certificate: facts.chain.first?.sha256, context)
            guard situation.turns.take(key, &context) else { return .wait(question, .line(key)) }
        }
        return .ask(marked(question, facts, situation, context), respondent, nil)
    }

    /// Somebody has accepted this key here before; or another one, and the server has a better certificate now.
    private mutating func useRemembered(
        _ facts: ServerTrustFacts, _ leaf: [UInt8], _ question: Question, _ situation: inout FetchSituation,
        _ context: inout FetchContext
    ) -> Resolution? {
        guard situation.intent.plan.trust == .onFailure, let known = remembered(situation, context) else { return nil }
        if known.spkiSha256 == leaf, decision != known {
            decide(known, &situation)
            return .send
        }
        if facts.problems.isEmpty {
            decide(nil, &situation)
            return transferVerified(question, &situation, &context)
        }
        return nil
    }

    /// The certificate verifies: what was remembered about an older one has had its day.
    private mutating func transferVerified(
        _ question: Question, _ situation: inout FetchSituation, _ context: inout FetchContext
    ) -> Resolution {
        if context.decisions.forgetTrust(at: situation.chain.origin) {
            context.add(.announce(CredentialChange(.forgotten, situation.space(.serverTrust))))
            context.add(.keepTrust(context.decisions.permanentKeys))
        }
        return .send
    }

    /// Says that the certificate is not the one that was accepted before.
    private func marked(
        _ question: Question, _ facts: ServerTrustFacts, _ situation: FetchSituation, _ context: FetchContext
    ) -> Question {
        guard let known = remembered(situation, context), known.spkiSha256 != facts.chain.first?.spkiSha256 else {
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
        // A certificate that verifies is no exception, whoever looked at it.
        let isException = !facts.problems.subtracting([.changed]).isEmpty
        return TrustDecision(spkiSha256: leaf, isException: isException, persistence: persistence, fetch: fetch)
    }

    mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, about facts: ServerTrustFacts, _ question: Question,
        _ situation: inout FetchSituation, _ context: inout FetchContext
    ) -> Resolution {
        guard case .credential(let credential) = answer else {
            situation.turns.release(
                answer == .reject ? .rejected(by: respondent) : .proceed, answeredBy: respondent, .connection, &context)
            if answer == .reject { return distrust(question, facts, &situation, &context) }
            return verifyNormally(question, facts, &situation, &context)
        }
        guard case .trust(let trust) = credential else {
            return .ask(question, respondent, .credentialOfWrongType)
        }
        guard let leaf = facts.chain.first?.spkiSha256, Hexadecimal.bytes(trust.spkiSha256) == leaf else {
            return .ask(question, respondent, .fingerprintWrong)
        }
        let isTooLong = trust.persistence == .permanent && !situation.intent.mayKeepForGood(respondent.source)
        let persistence = isTooLong ? .forSession : trust.persistence
        let decision = Self.decision(leaf, facts, persistence, for: situation.intent.id)
        let space = situation.space(.serverTrust)
        situation.note(.trustAccepted, space, nil, respondent.source, persistence, &context)
        let isCurrent = question.mark.map { context.forgets.isCurrent($0, for: space) } ?? true
        situation.turns.release(isCurrent ? .accepted(.trust(decision)) : .passed(declined: []), .connection, &context)
        return self.trust(decision, question, &situation, &context)
    }

    /// Whoever looked at the certificate does not take it, even if it verifies: with `tls.trust: "always"` that is what it is
    /// asked for.
    mutating func distrust(
        _ question: Question, _ facts: ServerTrustFacts, _ situation: inout FetchSituation,
        _ context: inout FetchContext
    ) -> Resolution {
        guard facts.problems.subtracting([.changed]).isEmpty else { return .giveUp(question) }
        situation.turns.release(.passed(declined: question.declined), .connection, &context)
        let text =
            "the certificate of \(situation.chain.origin.text) verifies, and was rejected in answer to the challenge"
        return .fail(FetchFailure(.serverNotTrusted, text))
    }

    /// Rules 11 and 13: a certificate that verifies is good enough, and any other is not.
    mutating func verifyNormally(
        _ question: Question, _ facts: ServerTrustFacts, _ situation: inout FetchSituation,
        _ context: inout FetchContext
    ) -> Resolution {
        guard facts.problems.subtracting([.changed]).isEmpty, let leaf = facts.chain.first?.spkiSha256 else {
            return .giveUp(question)
        }
        situation.turns.release(.passed(declined: question.declined), .connection, &context)
        return trust(Self.decision(leaf, facts, .none, for: situation.intent.id), question, &situation, &context)
    }

    /// Goes on with this certificate, which holds for this fetch alone, until its response has come.
    mutating func trust(
        _ decision: TrustDecision, _ question: Question, _ situation: inout FetchSituation,
        _ context: inout FetchContext
    ) -> Resolution {
        var decision = decision
        decision.fetch = situation.intent.id
        decide(decision, &situation)
        mark = question.mark ?? context.forgets.mark
        return .send
    }

    /// A response has come over a connection that was made with the decision.
    func noteResponse(_ situation: FetchSituation, _ context: inout FetchContext) {
        guard let trust = decision, trust.fetch != nil, trust.isException, trust.persistence != .none else { return }
        keep(trust, situation, &context)
    }

    /// Never silently: somebody has said for how long.
    private func keep(_ trust: TrustDecision, _ situation: FetchSituation, _ context: inout FetchContext) {
        guard situation.mayRememberTrust(context), let mark,
            context.forgets.isCurrent(mark, for: situation.space(.serverTrust))
        else { return }
        let key = TrustedKey(origin: situation.chain.origin, spkiSha256: trust.spkiSha256)
        let isPermanent = trust.persistence == .permanent
        let known = context.decisions.trustedKey(at: key.origin, owner: situation.intent.access.home)
        if let known, known.spkiSha256 == key.spkiSha256, known.isPermanent || !isPermanent { return }
        context.decisions.trust(key, isPermanent: isPermanent, owner: situation.intent.access.home, now: context.now)
        context.add(.announce(CredentialChange(.stored, situation.space(.serverTrust))))
        if isPermanent || known?.isPermanent == true { context.add(.keepTrust(context.decisions.permanentKeys)) }
    }
}

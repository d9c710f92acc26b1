internal import WatchwordProtocol

/// Which certificate a server gets that asks for one: semantics rules 11 and 13; security rules C1 to C3.
struct ClientCertificateResolution: Sendable {
    private(set) var decision = CertificateDecision.undecided
    /// The state of the forget log when the question was asked.
    private var mark: ForgetLog.Mark?
    /// The origin for which the current client certificate was recorded in the audit log, if any.
    private var notedAt: Origin?

    // MARK: Before a connection

    /// A new hop. What somebody decided for this fetch goes with it to the same origin only.
    mutating func enter(from previous: Origin?, _ situation: FetchSituation, _ context: FetchContext) {
        let before = previous == situation.chain.origin ? decision : .undecided
        decision = .undecided
        guard situation.chain.isSecure else { return }
        if before.isOfFetch {
            decision = before
        } else if !situation.asksFirst(in: situation.space(.clientCertificate)),
            let known = remembered(situation, context), isConsented(known.home, situation, context)
        {
            decision = .certificate(known.certificate, .session)
        }
    }

    /// What is remembered may have been forgotten, or locked away, meanwhile.
    mutating func refresh(_ situation: FetchSituation, _ context: FetchContext) {
        guard case .certificate(let shown, .session) = decision else { return }
        let known = remembered(situation, context)
        let isCurrent = known.map { $0.certificate == shown && isConsented($0.home, situation, context) }
        if isCurrent != true { decision = .undecided }
    }

    /// Whether a handshake fails in which the server asks for one, so that somebody can be asked.
    func refusesRequest(_ situation: FetchSituation) -> Bool {
        guard decision == .undecided else { return false }
        if hasOwn(situation) { return true }
        return mayShow(situation) && situation.nextRespondent(after: [], in: situation.space(.clientCertificate)) != nil
    }

    /// Whether the challenge may say that a certificate is remembered: not to a program without consent to use it.
    func proposes(_ situation: FetchSituation, _ context: FetchContext) -> Bool {
        let access = situation.intent.access
        return remembered(situation, context).map { access.subject == nil || $0.home == access.homeOfCertificates }
            ?? false
    }

    /// Returns the remembered certificate and its partition.
    func remembered(
        _ situation: FetchSituation, _ context: FetchContext
    ) -> (certificate: CertificateCredential, home: Partition?)? {
        let space = situation.space(.clientCertificate)
        guard situation.mayUseStorage(for: space, context), mayShow(situation), !hasOwn(situation),
            !situation.consent.isCertificateRefused(at: situation.server)
        else {
            return nil
        }
        for part in situation.intent.access.readableForCertificates {
            let known = context.decisions.certificate(at: situation.chain.origin, owner: part)
            if let known, !situation[situation.server].hasRefused(known) { return (known, part) }
        }
        return nil
    }

    /// A fetch that brings its own is made as nobody else.
    private func hasOwn(_ situation: FetchSituation) -> Bool {
        situation.intent.plan.certificate != nil && situation.chain.origin == situation.intent.plan.url.origin
    }

    private func mayShow(_ situation: FetchSituation) -> Bool {
        situation.intent.plan.methods?.contains(.clientCertificate) ?? true
    }

    private func isConsented(_ home: Partition?, _ situation: FetchSituation, _ context: FetchContext) -> Bool {
        let use = situation.consent.use(ofCertificateIn: home, at: situation.server)
        return situation.consent.isConsented(use, context)
    }

    private func confirm(
        _ home: Partition?, _ question: Question, _ situation: inout FetchSituation, _ context: inout FetchContext
    ) -> Resolution? {
        let use = situation.consent.use(ofCertificateIn: home, at: situation.server)
        return use.flatMap { situation.confirm($0, of: .session, question, &context) }
    }

    /// As far as the server has said it in this fetch.
    func request(_ situation: FetchSituation) -> ClientCertificateRequest {
        situation[situation.server].certificateRequest ?? ClientCertificateRequest(distinguishedNames: [])
    }

    /// Whether the certificate is a file or token of the user that this client may not name. PEM text belongs to the client.
    func isForeign(_ plan: FetchPlan) -> Bool {
        guard case .certificate(let own, let source) = decision,
            plan.isRestricted || !plan.mayNameFiles && source != .agent && source != .session
        else { return false }
        return !([own.certificate] + [own.privateKey].compactMap(\.self)).allSatisfy(\.isPEM)
    }

    /// Records in the audit log that the next request shows the certificate, once for each origin.
    mutating func noteUse(_ situation: FetchSituation, _ context: inout FetchContext) {
        guard case .certificate(_, let source) = decision, notedAt != situation.chain.origin else { return }
        notedAt = situation.chain.origin
        situation.note(.certificateUsed, situation.space(.clientCertificate), nil, source, nil, &context)
    }

    // MARK: A question

    mutating func choose(
        _ question: Question, _ situation: inout FetchSituation, _ context: inout FetchContext
    ) -> Resolution {
        if let own = situation.intent.plan.certificate, situation.chain.origin == situation.intent.plan.url.origin,
            !situation[situation.server].hasRefused(own)
        {
            return show(own, .explicit, question, &situation, &context)
        }
        let space = situation.space(.clientCertificate)
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned, let consultation = situation.nextConsultation(for: space, context) {
            return .consult(consultation, question)
        }
        let known = remembered(situation, context)
        if let known, !isAbandoned, !situation.asksFirst(in: space, after: question.declined) {
            return confirm(known.home, question, &situation, &context)
                ?? show(known.certificate, .session, question, &situation, &context)
        }
        guard let respondent = situation.nextRespondent(after: question.declined, in: space) else {
            return .giveUp(question)
        }
        let key = situation.turnKey(for: space, .find, context)
        guard situation.turns.take(key, &context) else { return .wait(question, .line(key)) }
        return .ask(question, respondent, nil)
    }

    mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, _ question: Question, _ situation: inout FetchSituation,
        _ context: inout FetchContext
    ) -> Resolution {
        guard case .credential(let credential) = answer else {
            situation.turns.release(
                answer == .reject ? .rejected(by: respondent) : .proceed, answeredBy: respondent, .connection, &context)
            return goOnWithout(question, &situation, &context)
        }
        if credential == .proposed {
            guard let known = remembered(situation, context) else {
                return .ask(question, respondent, .nothingProposed)
            }
            return confirm(known.home, question, &situation, &context)
                ?? show(known.certificate, .session, question, &situation, &context)
        }
        guard case .certificate(let certificate) = credential else {
            return .ask(question, respondent, .credentialOfWrongType)
        }
        guard !situation[situation.server].hasRefused(certificate) else {
            situation[situation.server].noteRepeatedAnswer()
            return .ask(question, respondent, .credentialAlreadyRefused)
        }
        return show(certificate, respondent.source, question, &situation, &context)
    }

    /// An empty list of certificates (RFC 8446 section 4.4.2): the server decides what becomes of that.
    mutating func goOnWithout(
        _ question: Question, _ situation: inout FetchSituation, _ context: inout FetchContext
    ) -> Resolution {
        situation.turns.release(.passed(declined: question.declined), .connection, &context)
        decision = .none
        return .send
    }

    mutating func show(
        _ certificate: CertificateCredential, _ source: CredentialSource, _ question: Question,
        _ situation: inout FetchSituation, _ context: inout FetchContext
    ) -> Resolution {
        decision = .certificate(certificate, source)
        mark = question.mark ?? context.forgets.mark
        notedAt = nil
        return .send
    }

    // MARK: What becomes of it

    /// A response has come: what the connection was made with is good.
    func noteResponse(
        _ response: TransferResponse, _ situation: inout FetchSituation, _ context: inout FetchContext
    ) {
        guard case .certificate(var certificate, let source) = decision, response.status != 400 else { return }
        certificate.acceptedContent = response.clientCertificate
        if source != .session || response.clientCertificateRequest != nil {
            situation.chain.hasAuthenticated = true
        }
        let space = situation.space(.clientCertificate)
        if source != .session { situation.judge(space, nil, isAccepted: true, &context) }
        let isCurrent = mark.map { context.forgets.isCurrent($0, for: space) } ?? false
        if isCurrent, certificate.persistence != .none, source != .session, situation.mayUseStorage(for: space, context)
        {
            let isNews = context.decisions.remember(
                certificate, at: situation.chain.origin, owner: situation.intent.access.homeOfCertificates,
                now: context.now)
            if isNews { context.add(.announce(CredentialChange(.stored, space))) }
        }
        situation.turns.release(
            isCurrent ? .accepted(.certificate(certificate, source)) : .passed(declined: []), .connection, &context)
    }

    /// The certificate that was shown is of no use: it is forgotten if it was remembered, and the question is put again.
    mutating func failed(
        _ failure: TransferFailure, _ problem: Challenge.AnswerProblem, _ situation: inout FetchSituation,
        _ context: inout FetchContext
    ) -> Question? {
        guard case .certificate(let certificate, let source) = decision else { return nil }
        decision = .undecided
        if problem == .certificateRefused {
            situation.note(.certificateRefused, situation.space(.clientCertificate), nil, source, nil, &context)
        }
        let space = situation.space(.clientCertificate)
        situation.judge(space, nil, isAccepted: false, &context)
        if context.decisions.forget(certificate, at: situation.chain.origin) {
            context.add(.announce(CredentialChange(.forgotten, space)))
        }
        context.identities.forget { $0.certificate?.isSame(as: certificate) == true }
        // What the file holds now has not been refused.
        if problem != .certificateChanged { situation[situation.server].noteRefusal(of: certificate) }
        var question = Question(.clientCertificate(request(situation)), .failure(FetchFailure(failure)))
        question.problem = problem
        return question
    }
}

extension Secret {
    fileprivate var isPEM: Bool { withUnsafeBytes { $0.starts(with: "-----BEGIN ".utf8) } }
}

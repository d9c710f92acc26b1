internal import WatchwordProtocol

/// Decides which client certificate is sent to a server: SEMANTICS rules 11 and 13; SECURITY-RULES C1 to C3.
struct ClientCertificateResolution: Sendable {
    private(set) var decision = CertificateDecision.undecided
    /// The state of the forget log when the question was asked.
    private var mark: ForgetLog.Mark?
    /// The origin for which the current client certificate was recorded in the audit log, if any.
    private var auditedAt: Origin?
    /// How the fetch steered its connection when the certificate was chosen.
    private var steering: AuthenticationQueues.Steering?

    // MARK: Before a connection

    /// Prepares a new hop. A decision made for this fetch applies only while the origin stays the same.
    mutating func enter(from previous: Origin?, _ hopState: HopState, _ context: FetchContext) {
        let before = previous == hopState.chain.origin ? decision : .undecided
        decision = .undecided
        guard hopState.chain.isSecure else { return }
        if before.appliesToFetchOnly {
            decision = before
        } else if !hopState.asksFirst(in: hopState.space(.clientCertificate)),
            let known = remembered(hopState, context), isConsented(known.partition, hopState, context)
        {
            decision = .certificate(known.certificate, .session)
        }
    }

    /// Drops a remembered certificate that may no longer be used: it was forgotten or replaced, the broker was locked,
    /// or consent is missing.
    mutating func refresh(_ hopState: HopState, _ context: FetchContext) {
        // The person was asked about another server.
        if case .certificate(_, .agent) = decision,
            steering != hopState.steering(to: hopState.server)
        {
            decision = .undecided
        }
        guard case .certificate(let shown, .session) = decision else { return }
        let known = remembered(hopState, context)
        let isCurrent = known.map { $0.certificate == shown && isConsented($0.partition, hopState, context) }
        if isCurrent != true { decision = .undecided }
    }

    /// Whether to abort the handshake if the server requests a certificate, so that the fetch can choose or ask for
    /// one.
    func refusesRequest(_ hopState: HopState) -> Bool {
        guard decision == .undecided else { return false }
        if hasOwn(hopState) { return true }
        return mayShow(hopState) && hopState.nextRespondent(after: [], in: hopState.space(.clientCertificate)) != nil
    }

    /// Whether the challenge may propose the remembered certificate. A program that needs consent is offered only the
    /// certificates of its own partition.
    func proposes(_ hopState: HopState, _ context: FetchContext) -> Bool {
        let access = hopState.intent.access
        return remembered(hopState, context).map {
            access.subject == nil || $0.partition == access.certificatePartition
        }
            ?? false
    }

    /// Returns the remembered certificate that this fetch may send, and its partition.
    func remembered(
        _ hopState: HopState, _ context: FetchContext
    ) -> (certificate: CertificateCredential, partition: Partition?)? {
        let space = hopState.space(.clientCertificate)
        guard hopState.allowsStorageNow(for: space, context), mayShow(hopState), !hasOwn(hopState),
            !hopState.consent.isCertificateRefused(at: hopState.server)
        else {
            return nil
        }
        for part in hopState.intent.access.readableForCertificates {
            let known = context.decisions.certificate(at: hopState.chain.origin, owner: part)
            if let known, !hopState[hopState.server].hasRefused(known) { return (known, part) }
        }
        return nil
    }

    /// Whether the fetch supplies its own certificate for this origin; no other one is sent then.
    private func hasOwn(_ hopState: HopState) -> Bool {
        hopState.intent.plan.certificate != nil && hopState.chain.origin == hopState.intent.plan.url.origin
    }

    private func mayShow(_ hopState: HopState) -> Bool {
        hopState.intent.plan.methods?.contains(.clientCertificate) ?? true
    }

    private func isConsented(_ partition: Partition?, _ hopState: HopState, _ context: FetchContext) -> Bool {
        let use = hopState.consent.use(ofCertificateIn: partition, at: hopState.server)
        return hopState.consent.isConsented(use, context)
    }

    private func confirm(
        _ partition: Partition?, _ question: Question, _ hopState: inout HopState, _ context: inout FetchContext
    ) -> Resolution? {
        let use = hopState.consent.use(ofCertificateIn: partition, at: hopState.server)
        return use.flatMap { hopState.confirm($0, of: .session, question, &context) }
    }

    /// Returns the server's last certificate request in this fetch; an empty one if there was none.
    func request(_ hopState: HopState) -> ClientCertificateRequest {
        hopState[hopState.server].certificateRequest ?? ClientCertificateRequest(distinguishedNames: [])
    }

    /// Whether the certificate or its key is a file or token of the user that this client may not name. PEM text is
    /// always allowed.
    func isForeign(_ intent: FetchIntent) -> Bool {
        guard case .certificate(let own, let source) = decision,
            intent.plan.isRestricted || !intent.plan.mayNameFiles && source != .agent && source != .session
        else { return false }
        return !([own.certificate] + [own.privateKey].compactMap(\.self)).allSatisfy(\.isPEM)
    }

    /// Records in the audit log that the next request presents the certificate, unless the last such record is of the
    /// same certificate and origin.
    mutating func recordUse(_ hopState: HopState, _ context: inout FetchContext) {
        guard case .certificate(_, let source) = decision, auditedAt != hopState.chain.origin else { return }
        auditedAt = hopState.chain.origin
        hopState.audit(.certificateUsed, hopState.space(.clientCertificate), nil, source, nil, &context)
    }

    // MARK: Questions

    mutating func choose(
        _ question: Question, _ hopState: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        if let own = hopState.intent.plan.certificate, hopState.chain.origin == hopState.intent.plan.url.origin,
            !hopState[hopState.server].hasRefused(own)
        {
            return show(own, .explicit, question, &hopState, &context)
        }
        let space = hopState.space(.clientCertificate)
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned, let consultation = hopState.nextConsultation(for: space, context) {
            return .consult(consultation, question)
        }
        let known = remembered(hopState, context)
        if let known, !isAbandoned, !hopState.asksFirst(in: space, after: question.declined) {
            return confirm(known.partition, question, &hopState, &context)
                ?? show(known.certificate, .session, question, &hopState, &context)
        }
        guard let respondent = hopState.nextRespondent(after: question.declined, in: space) else {
            return .endUnanswered(question)
        }
        let key = hopState.queueKey(for: space, .find, context)
        guard hopState.leases.take(key, &context) else { return .wait(question, .queue(key)) }
        return .ask(question, respondent, nil)
    }

    mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, _ question: Question, _ hopState: inout HopState,
        _ context: inout FetchContext
    ) -> Resolution {
        guard case .credential(let credential) = answer else {
            hopState.leases.release(
                answer == .reject ? .rejected(by: respondent) : .proceed, answeredBy: respondent, .connection, &context)
            return continueWithout(question, &hopState, &context)
        }
        if credential == .proposed {
            guard let known = remembered(hopState, context) else {
                return .ask(question, respondent, .nothingProposed)
            }
            return confirm(known.partition, question, &hopState, &context)
                ?? show(known.certificate, .session, question, &hopState, &context)
        }
        guard case .certificate(let certificate) = credential else {
            return .ask(question, respondent, .credentialOfWrongType)
        }
        guard !hopState[hopState.server].hasRefused(certificate) else {
            hopState[hopState.server].recordRepeatedAnswer()
            return .ask(question, respondent, .credentialAlreadyRefused)
        }
        return show(certificate, respondent.source, question, &hopState, &context)
    }

    /// Continues with an empty list of certificates (RFC 8446 section 4.4.2), which the server may accept or refuse.
    mutating func continueWithout(
        _ question: Question, _ hopState: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        hopState.leases.release(.passed(declined: question.declined), .connection, &context)
        decision = .none
        return .send
    }

    mutating func show(
        _ certificate: CertificateCredential, _ source: CredentialSource, _ question: Question,
        _ hopState: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        decision = .certificate(certificate, source)
        mark = question.mark ?? context.forgets.mark
        auditedAt = nil
        steering = hopState.steering(to: hopState.server)
        return .send
    }

    // MARK: Outcome

    /// Records that the server has accepted the certificate, and remembers it if its persistence allows. A response
    /// with status 400 does not count: nginx refuses a certificate in this way.
    func recordResponse(
        _ response: TransferResponse, _ hopState: inout HopState, _ context: inout FetchContext
    ) {
        guard case .certificate(var certificate, let source) = decision, response.status != 400 else { return }
        certificate.acceptedContent = response.clientCertificate
        if source != .session || response.clientCertificateRequest != nil {
            hopState.chain.hasAuthenticated = true
        }
        let space = hopState.space(.clientCertificate)
        if source != .session { hopState.report(space, nil, isAccepted: true, &context) }
        let isCurrent = mark.map { context.forgets.isCurrent($0, for: space) } ?? false
        if isCurrent, certificate.persistence != .none, source != .session,
            hopState.allowsStorageNow(for: space, context)
        {
            let isNews = context.decisions.remember(
                certificate, at: hopState.chain.origin, owner: hopState.intent.access.certificatePartition,
                now: context.now)
            if isNews { context.add(.announce(CredentialChange(.stored, space))) }
        }
        hopState.leases.release(
            isCurrent ? .accepted(.certificate(certificate, source)) : .passed(declined: []), .connection, &context)
    }

    /// Handles a certificate that was refused or cannot be used: forgets it if it is remembered, and returns a new
    /// question. Returns `nil` if no certificate was sent.
    mutating func failed(
        _ failure: TransferFailure, _ problem: Challenge.AnswerProblem, _ hopState: inout HopState,
        _ context: inout FetchContext
    ) -> Question? {
        guard case .certificate(let certificate, let source) = decision else { return nil }
        decision = .undecided
        if problem == .certificateRefused {
            hopState.audit(.certificateRefused, hopState.space(.clientCertificate), nil, source, nil, &context)
        }
        let space = hopState.space(.clientCertificate)
        hopState.report(space, nil, isAccepted: false, &context)
        if hopState.allowsStorageNow(for: space, context),
            context.decisions.forget(certificate, at: hopState.chain.origin)
        {
            context.add(.announce(CredentialChange(.forgotten, space)))
        }
        context.identities.forget { $0.certificate?.isSame(as: certificate) == true }
        // If the file has changed, the server has not refused its current content.
        if problem != .certificateChanged { hopState[hopState.server].recordRefusal(of: certificate) }
        var question = Question(.clientCertificate(request(hopState)), .failure(FetchFailure(failure)))
        question.problem = problem
        return question
    }
}

extension Secret {
    fileprivate var isPEM: Bool { withUnsafeBytes { $0.starts(with: "-----BEGIN ".utf8) } }
}

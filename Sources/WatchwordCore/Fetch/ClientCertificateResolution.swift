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
    mutating func enter(from previous: Origin?, _ hop: HopState, _ context: FetchContext) {
        let before = previous == hop.chain.origin ? decision : .undecided
        decision = .undecided
        guard hop.chain.isSecure else { return }
        if before.appliesToFetchOnly {
            decision = before
        } else if !hop.asksFirst(in: hop.space(.clientCertificate)),
            let known = remembered(hop, context), isConsented(known.partition, hop, context)
        {
            decision = .certificate(known.certificate, .session)
        }
    }

    /// Drops a remembered certificate that may no longer be used: it was forgotten or replaced, the broker was locked,
    /// or consent is missing.
    mutating func refresh(_ hop: HopState, _ context: FetchContext) {
        // The person was asked about another server.
        if case .certificate(_, .agent) = decision,
            steering != hop.steering(to: hop.server)
        {
            decision = .undecided
        }
        guard case .certificate(let shown, .session) = decision else { return }
        let known = remembered(hop, context)
        let isCurrent = known.map { $0.certificate == shown && isConsented($0.partition, hop, context) }
        if isCurrent != true { decision = .undecided }
    }

    /// Whether to abort the handshake if the server requests a certificate, so that the fetch can choose or ask for
    /// one.
    func refusesRequest(_ hop: HopState) -> Bool {
        guard decision == .undecided else { return false }
        if hasOwn(hop) { return true }
        return mayShow(hop) && hop.nextRespondent(after: [], in: hop.space(.clientCertificate)) != nil
    }

    /// Whether the challenge may propose the remembered certificate. A program that needs consent is offered only the
    /// certificates of its own partition.
    func proposes(_ hop: HopState, _ context: FetchContext) -> Bool {
        let access = hop.fetch.access
        return remembered(hop, context).map {
            access.subject == nil || $0.partition == access.certificatePartition
        }
            ?? false
    }

    /// Returns the remembered certificate that this fetch may send, and its partition.
    func remembered(
        _ hop: HopState, _ context: FetchContext
    ) -> (certificate: CertificateCredential, partition: Partition?)? {
        let space = hop.space(.clientCertificate)
        guard hop.allowsStorageNow(for: space, context), mayShow(hop), !hasOwn(hop),
            !hop.consent.isCertificateRefused(at: hop.server)
        else {
            return nil
        }
        for part in hop.fetch.access.readableForCertificates {
            let known = context.decisions.certificate(at: hop.chain.origin, owner: part)
            if let known, !hop[hop.server].hasRefused(known) { return (known, part) }
        }
        return nil
    }

    /// Whether the fetch supplies its own certificate for this origin; no other one is sent then.
    private func hasOwn(_ hop: HopState) -> Bool {
        hop.fetch.certificate != nil && hop.chain.origin == hop.fetch.url.origin
    }

    private func mayShow(_ hop: HopState) -> Bool {
        hop.fetch.methods?.contains(.clientCertificate) ?? true
    }

    private func isConsented(_ partition: Partition?, _ hop: HopState, _ context: FetchContext) -> Bool {
        let use = hop.consent.use(ofCertificateIn: partition, at: hop.server)
        return hop.consent.isConsented(use, context)
    }

    private func confirm(
        _ partition: Partition?, _ question: Question, _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution? {
        let use = hop.consent.use(ofCertificateIn: partition, at: hop.server)
        return use.flatMap { hop.confirm($0, of: .session, question, &context) }
    }

    /// Returns the server's last certificate request in this fetch; an empty one if there was none.
    func request(_ hop: HopState) -> ClientCertificateRequest {
        hop[hop.server].certificateRequest ?? ClientCertificateRequest(distinguishedNames: [])
    }

    /// Whether the certificate or its key is a file or token of the user that this client may not name. PEM text is
    /// always allowed.
    func isForeign(_ fetch: SharedFetchRequest) -> Bool {
        guard case .certificate(let own, let source) = decision,
            fetch.isRestricted || !fetch.mayNameFiles && source != .agent && source != .session
        else { return false }
        return !([own.certificate] + [own.privateKey].compactMap(\.self)).allSatisfy(\.isPEM)
    }

    /// Records in the audit log that the next request presents the certificate, unless the last such record is of the
    /// same certificate and origin.
    mutating func recordUse(_ hop: HopState, _ context: inout FetchContext) {
        guard case .certificate(_, let source) = decision, auditedAt != hop.chain.origin else { return }
        auditedAt = hop.chain.origin
        hop.audit(.certificateUsed, hop.space(.clientCertificate), nil, source, nil, &context)
    }

    // MARK: Questions

    mutating func choose(
        _ question: Question, _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        if let own = hop.fetch.certificate, hop.chain.origin == hop.fetch.url.origin,
            !hop[hop.server].hasRefused(own)
        {
            return show(own, .explicit, question, &hop, &context)
        }
        let space = hop.space(.clientCertificate)
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned, let consultation = hop.nextConsultation(for: space, context) {
            return .consult(consultation, question)
        }
        let known = remembered(hop, context)
        if let known, !isAbandoned, !hop.asksFirst(in: space, after: question.declined) {
            return confirm(known.partition, question, &hop, &context)
                ?? show(known.certificate, .session, question, &hop, &context)
        }
        guard let respondent = hop.nextRespondent(after: question.declined, in: space) else {
            return .endUnanswered(question)
        }
        let key = hop.queueKey(for: space, .find, context)
        guard hop.leases.take(key, &context) else { return .wait(question, .queue(key)) }
        return .ask(question, respondent, nil)
    }

    mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, _ question: Question, _ hop: inout HopState,
        _ context: inout FetchContext
    ) -> Resolution {
        guard case .credential(let credential) = answer else {
            hop.leases.release(
                answer == .reject ? .rejected(by: respondent) : .proceed, answeredBy: respondent, .connection, &context)
            return continueWithout(question, &hop, &context)
        }
        if credential == .proposed {
            guard let known = remembered(hop, context) else {
                return .ask(question, respondent, .nothingProposed)
            }
            return confirm(known.partition, question, &hop, &context)
                ?? show(known.certificate, .session, question, &hop, &context)
        }
        guard case .certificate(let certificate) = credential else {
            return .ask(question, respondent, .credentialOfWrongType)
        }
        guard !hop[hop.server].hasRefused(certificate) else {
            hop[hop.server].recordRepeatedAnswer()
            return .ask(question, respondent, .credentialAlreadyRefused)
        }
        return show(certificate, respondent.source, question, &hop, &context)
    }

    /// Continues with an empty list of certificates (RFC 8446 section 4.4.2), which the server may accept or refuse.
    mutating func continueWithout(
        _ question: Question, _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        hop.leases.release(.passed(declined: question.declined), .connection, &context)
        decision = .none
        return .send
    }

    mutating func show(
        _ certificate: CertificateCredential, _ source: CredentialSource, _ question: Question,
        _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution {
        decision = .certificate(certificate, source)
        mark = question.mark ?? context.forgets.mark
        auditedAt = nil
        steering = hop.steering(to: hop.server)
        return .send
    }

    // MARK: Outcome

    /// Records that the server has accepted the certificate, and remembers it if its persistence allows. A response
    /// with status 400 does not count: nginx refuses a certificate in this way.
    func recordResponse(
        _ response: TransferResponse, _ hop: inout HopState, _ context: inout FetchContext
    ) {
        guard case .certificate(var certificate, let source) = decision, response.status != 400 else { return }
        certificate.acceptedContent = response.clientCertificate
        if source != .session || response.clientCertificateRequest != nil {
            hop.chain.hasAuthenticated = true
        }
        let space = hop.space(.clientCertificate)
        if source != .session { hop.report(space, nil, isAccepted: true, &context) }
        let isCurrent = mark.map { context.forgets.isCurrent($0, for: space) } ?? false
        if isCurrent, certificate.persistence != .none, source != .session,
            hop.allowsStorageNow(for: space, context)
        {
            let isNews = context.decisions.remember(
                certificate, at: hop.chain.origin, owner: hop.fetch.access.certificatePartition,
                now: context.now)
            if isNews { context.add(.announce(CredentialChange(.stored, space))) }
        }
        hop.leases.release(
            isCurrent ? .accepted(.certificate(certificate, source)) : .passed(declined: []), .connection, &context)
    }

    /// Handles a certificate that was refused or cannot be used: forgets it if it is remembered, and returns a new
    /// question. Returns `nil` if no certificate was sent.
    mutating func failed(
        _ failure: TransferFailure, _ problem: Challenge.AnswerProblem, _ hop: inout HopState,
        _ context: inout FetchContext
    ) -> Question? {
        guard case .certificate(let certificate, let source) = decision else { return nil }
        decision = .undecided
        if problem == .certificateRefused {
            hop.audit(.certificateRefused, hop.space(.clientCertificate), nil, source, nil, &context)
        }
        let space = hop.space(.clientCertificate)
        hop.report(space, nil, isAccepted: false, &context)
        if hop.allowsStorageNow(for: space, context),
            context.decisions.forget(certificate, at: hop.chain.origin)
        {
            context.add(.announce(CredentialChange(.forgotten, space)))
        }
        context.identities.forget { $0.certificate?.isSame(as: certificate) == true }
        // If the file has changed, the server has not refused its current content.
        if problem != .certificateChanged { hop[hop.server].recordRefusal(of: certificate) }
        var question = Question(.clientCertificate(request(hop)), .failure(FetchFailure(failure)))
        question.problem = problem
        return question
    }
}

extension Secret {
    fileprivate var isPEM: Bool { withUnsafeBytes { $0.starts(with: "-----BEGIN ".utf8) } }
}

internal import WatchwordProtocol

/// What a connection itself asks: whether its certificate is good enough, and for one of ours. Semantics rules 1, 2, 11, 13,
/// 20, 24; security rules C1 to C10.
extension FetchMachine {
    // MARK: Before a connection

    /// What is known about the server of a new hop. A decision that somebody made for this fetch goes with it to the same
    /// origin only.
    mutating func enterConnection(from previous: Origin?, _ context: FetchContext) {
        let origin = hop.url.origin
        let before = previous == origin ? outgoing : Outgoing()
        outgoing.trust = nil
        outgoing.certificate = .undecided
        guard origin.scheme == .https else { return }
        if let pinned = plan.pinnedKey {
            // Nobody has looked at what else may be wrong with it.
            outgoing.trust = TrustDecision(spkiSha256: pinned, isException: true, persistence: .none, fetch: id)
        } else if plan.trust == .onFailure {
            outgoing.trust = rememberedTrust(context)
        }
        if before.trust?.fetch == id { outgoing.trust = before.trust }
        if before.certificate.isOfFetch {
            outgoing.certificate = before.certificate
        } else if !asksFirst(in: server.space(realm: nil, .clientCertificate)),
            let known = rememberedCertificate(context), isCertificateConsented(home: known.home, context)
        {
            outgoing.certificate = .certificate(known.certificate, .session)
        }
    }

    /// What is remembered was made for this server.
    func rememberedTrust(_ context: FetchContext) -> TrustDecision? {
        guard mayRememberTrust(context) else { return nil }
        return context.decisions.trustedKey(at: hop.url.origin, owner: access.home).map { key in
            TrustDecision(
                spkiSha256: key.spkiSha256, isException: true,
                persistence: key.isPermanent ? .permanent : .forSession, fetch: nil)
        }
    }

    /// Even that there is one is nobody's business who may not use it.
    func proposesCertificate(_ context: FetchContext) -> Bool {
        rememberedCertificate(context).map { access.subject == nil || $0.home == access.homeOfCertificates } ?? false
    }

    /// What the session has, and in whose part.
    func rememberedCertificate(
        _ context: FetchContext
    ) -> (certificate: CertificateCredential, home: Partition?)? {
        let space = server.space(realm: nil, .clientCertificate)
        guard mayUseStorage(for: space, context), mayShowCertificates, !hasOwnCertificate, !isCertificateRefused else {
            return nil
        }
        for part in access.readableForCertificates {
            let known = context.decisions.certificate(at: hop.url.origin, owner: part)
            if let known, !target(server).hasRefused(known) { return (known, part) }
        }
        return nil
    }

    /// What the adapter has to know of all this.
    func secure(_ request: inout TransferRequest) {
        switch outgoing.trust {
        case .some(let decision): request.trust = .leaf(spkiSha256: decision.spkiSha256)
        case nil: request.trust = plan.trust == .always ? .ask : .verify
        }
        request.clientCertificate = outgoing.certificate.credential.map(ClientCertificate.init)
        request.refusesCertificateRequest = outgoing.certificate == .undecided && mightAnswerForCertificate
    }

    /// A fetch that brings its own is made as nobody else.
    private var hasOwnCertificate: Bool { plan.certificate != nil && hop.url.origin == plan.url.origin }

    private var mayShowCertificates: Bool { plan.methods?.contains(.clientCertificate) ?? true }

    /// As far as the server has said it in this fetch.
    var certificateRequest: ClientCertificateRequest {
        targets[server]?.certificateRequest ?? ClientCertificateRequest(distinguishedNames: [])
    }

    private var mightAnswerForCertificate: Bool {
        if hasOwnCertificate { return true }
        guard mayShowCertificates else { return false }
        let space = server.space(realm: nil, .clientCertificate)
        let question = Question(
            .clientCertificate(ClientCertificateRequest(distinguishedNames: [])),
            .failure(FetchFailure(.clientCertificateRejected, "")))
        return nextRespondent(for: question, in: space) != nil
    }

    /// A response has come: what the connection was made with is good.
    mutating func noteConnection(
        _ response: TransferResponse, _ context: inout FetchContext
    ) {
        guard hop.url.origin.scheme == .https, !response.isFromProxy else { return }
        if case .certificate(var certificate, let source) = outgoing.certificate, response.status != 400 {
            certificate.acceptedContent = response.clientCertificate
            if source != .session || response.clientCertificateRequest != nil { hasAuthenticated = true }
            let space = server.space(realm: nil, .clientCertificate)
            if source != .session { judge(space, nil, isAccepted: true, &context) }
            let isCurrent = outgoing.certificateMark.map { context.forgets.isCurrent($0, for: space) } ?? false
            if isCurrent, certificate.persistence != .none, source != .session, mayUseStorage(for: space, context) {
                let isNews = context.decisions.remember(
                    certificate, at: hop.url.origin, owner: access.homeOfCertificates, now: context.now)
                if isNews { context.add(.changed(CredentialChange(.stored, space))) }
            }
            release(
                isCurrent ? .accepted(.certificate(certificate, source)) : .passed(declined: []), .connection, &context)
        }
        if let trust = outgoing.trust, trust.fetch != nil, trust.isException, trust.persistence != .none {
            keep(trust, &context)
        }
        release(.passed(declined: []), .connection, &context)
    }

    /// Never silently: somebody has said for how long.
    private mutating func keep(_ trust: TrustDecision, _ context: inout FetchContext) {
        guard mayRememberTrust(context), let mark = outgoing.trustMark,
            context.forgets.isCurrent(mark, for: server.space(realm: nil, .serverTrust))
        else { return }
        let key = TrustedKey(origin: hop.url.origin, spkiSha256: trust.spkiSha256)
        let isPermanent = trust.persistence == .permanent
        let known = context.decisions.trustedKey(at: key.origin, owner: access.home)
        if let known, known.spkiSha256 == key.spkiSha256, known.isPermanent || !isPermanent { return }
        context.decisions.trust(key, isPermanent: isPermanent, owner: access.home, now: context.now)
        context.add(.changed(CredentialChange(.stored, server.space(realm: nil, .serverTrust))))
        if isPermanent || known?.isPermanent == true { context.add(.keepTrust(context.decisions.permanentKeys)) }
    }

    // MARK: A transfer that failed

    /// The question that a failure raises; `nil` where it is just a failure.
    mutating func question(
        about failure: TransferFailure, _ context: inout FetchContext
    ) -> FetchStep? {
        let outcome = Question.Outcome.failure(FetchFailure(failure))
        if let request = failure.clientCertificateRequest {
            targets[server, default: TargetRecord()].certificateRequest = request
        }
        if failure.kind == .serverNotTrusted, let facts = failure.serverTrust, !facts.chain.isEmpty {
            return raise(Question(.serverTrust(facts), outcome), &context)
        }
        switch failure.cause {
        case .clientCertificateRequired where outgoing.certificate == .undecided:
            return raise(Question(.clientCertificate(certificateRequest), outcome), &context)
        case .clientCertificateUnreadable, .clientKeyMismatch:
            return certificateFailed(failure, .certificateNotUsable, &context)
        case .clientCertificateChanged:
            return certificateFailed(failure, .certificateChanged, &context)
        case .clientKeyExposed:
            return certificateFailed(failure, .keyExposed, &context)
        case .clientKeyPassphraseWrong:
            return certificateFailed(failure, .passphraseWrong, &context)
        case .tokenPINNotTried:
            return certificateFailed(failure, .pinNotTried, &context)
        case .clientCertificateRefused:
            return certificateFailed(failure, .certificateRefused, &context)
        case .proxyLoginRefused:
            guard let endpoint = route?.endpoint, endpoint.type == .socks else { return nil }
            let offers = OfferList(socks: endpoint)
            return challenged(Question(.login(offers, .proxy), outcome), offers, .proxy, &context)
        case .noTicket, .charactersUnsupported:
            return technicalFailure(nil, &context)
        case .channelChanged(let serverEndPoint):
            return bindAgain(serverEndPoint, &context)
                ?? technicalFailure(FetchFailure(failure), &context)
        case .ntlmChallengeUnusable, .ntlmNotContinued:
            return technicalFailure(FetchFailure(failure), &context)
        default:
            return nil
        }
    }

    mutating func raise(
        _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        rounds += 1
        guard rounds <= Limits.authenticationRounds else { return tooManyAttempts(server, &context) }
        return choose(question, &context)
    }

    /// One of several servers behind the name, or somebody in between: to that one a ticket that names its own certificate is of
    /// no use anywhere else.
    private mutating func bindAgain(
        _ serverEndPoint: [UInt8]?, _ context: inout FetchContext
    ) -> FetchStep? {
        guard var attempt = outgoing.server, attempt.challenge == .negotiate, let serverEndPoint,
            attempt.rebindings < Limits.channelChanges
        else { return nil }
        attempt.rebindings += 1
        attempt.serverEndPoint = serverEndPoint
        outgoing.server = attempt
        return transfer(&context)
    }

    /// Rule 8 of the order of schemes (security rules, 6.7): a login that could not even be made leads to a question, and never
    /// silently to a weaker scheme.
    /// - Parameter obstacle: the result where nobody is asked; `nil` for the response that challenged.
    private mutating func technicalFailure(
        _ obstacle: FetchFailure?, _ context: inout FetchContext
    ) -> FetchStep? {
        guard var question = handshakeQuestion, let (attempt, side) = outgoing.handshake, !attempt.isAccepted,
            case .login(_, side) = question.kind
        else { return nil }
        outgoing[side] = nil
        context.turns.endTrial(by: id, in: attempt.space)
        let challenger = attempt.challenger
        targets[challenger, default: TargetRecord()].noteRejection(of: attempt.challenge, in: attempt.space)
        targets[challenger, default: TargetRecord()].asksBeforeWeaker = true
        question.obstacle = obstacle
        return choose(question, &context)
    }
}

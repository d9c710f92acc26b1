internal import WatchwordProtocol

/// What a connection itself asks: whether its certificate is good enough, and for one of ours. Semantics rules 1, 2, 11, 13,
/// 20, 24; security rules C1 to C10.
extension FetchMachine {
    // MARK: Before a connection

    /// What is known about the server of a new hop. A decision that somebody made for this fetch goes with it to the same
    /// origin only.
    mutating func enterConnection(from previous: Origin?, _ memory: CredentialMemory) {
        let origin = hop.url.origin
        let before = previous == origin ? outgoing : Outgoing()
        outgoing.trust = nil
        outgoing.certificate = .undecided
        guard origin.scheme == .https else { return }
        if let pinned = plan.pinnedKey {
            // Nobody has looked at what else may be wrong with it.
            outgoing.trust = TrustDecision(spkiSha256: pinned, isException: true, persistence: .none, fetch: id)
        } else if plan.trust == .onFailure {
            outgoing.trust = rememberedTrust(memory)
        }
        if before.trust?.fetch == id { outgoing.trust = before.trust }
        if before.certificate.isOfFetch {
            outgoing.certificate = before.certificate
        } else if !isAskedFirst(about: .clientCertificate), let certificate = rememberedCertificate(memory) {
            outgoing.certificate = .certificate(certificate, .session)
        }
    }

    /// What is remembered was made for this server.
    private func rememberedTrust(_ memory: CredentialMemory) -> TrustDecision? {
        guard mayRememberTrust(memory) else { return nil }
        return memory.decisions.trustedKey(at: hop.url.origin, owner: owner).map { key in
            TrustDecision(
                spkiSha256: key.spkiSha256, isException: true,
                persistence: key.isPermanent ? .permanent : .forSession, fetch: nil)
        }
    }

    func proposesCertificate(_ memory: CredentialMemory) -> Bool { rememberedCertificate(memory) != nil }

    private func rememberedCertificate(_ memory: CredentialMemory) -> CertificateCredential? {
        let space = server.space(realm: nil, .clientCertificate)
        guard mayUseStorage(for: space, memory), mayShowCertificates, !hasOwnCertificate else { return nil }
        let known = memory.decisions.certificate(at: hop.url.origin, owner: owner)
        return known.flatMap { target(server).hasRefused($0) ? nil : $0 }
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

    /// Rule 5.
    private func isAskedFirst(about method: AuthenticationMethod) -> Bool {
        plan.asksFirst && plan.subscription?.covers(server.space(realm: nil, method)) == true
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
        _ response: TransferResponse, _ now: Duration, _ memory: inout CredentialMemory
    ) {
        guard hop.url.origin.scheme == .https, !response.isFromProxy else { return }
        if case .certificate(let certificate, let source) = outgoing.certificate, response.status != 400 {
            if source != .session || response.clientCertificateRequest != nil { hasAuthenticated = true }
            let space = server.space(realm: nil, .clientCertificate)
            if certificate.persistence != .none, source != .session, mayUseStorage(for: space, memory) {
                memory.decisions.remember(certificate, at: hop.url.origin, owner: owner, now: now)
            }
            release(.accepted(.certificate(certificate, source)), .connection, &memory)
        }
        if let trust = outgoing.trust, trust.fetch != nil, trust.isException, trust.persistence != .none {
            keep(trust, now, &memory)
        }
        release(.passed(declined: []), .connection, &memory)
    }

    /// Never silently: somebody has said for how long.
    private mutating func keep(_ trust: TrustDecision, _ now: Duration, _ memory: inout CredentialMemory) {
        guard mayRememberTrust(memory) else { return }
        let key = TrustedKey(origin: hop.url.origin, spkiSha256: trust.spkiSha256)
        let isPermanent = trust.persistence == .permanent
        let known = memory.decisions.trustedKey(at: key.origin, owner: owner)
        if let known, known.spkiSha256 == key.spkiSha256, known.isPermanent || !isPermanent { return }
        memory.decisions.trust(key, isPermanent: isPermanent, owner: owner, now: now)
        if isPermanent || known?.isPermanent == true { memory.add(.keepTrust(memory.decisions.permanentKeys)) }
    }

    // MARK: A transfer that failed

    /// The question that a failure raises; `nil` where it is just a failure.
    mutating func question(
        about failure: TransferFailure, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep? {
        let outcome = Question.Outcome.failure(FetchFailure(failure))
        if failure.kind == .serverNotTrusted, let facts = failure.serverTrust, !facts.chain.isEmpty {
            return raise(Question(.serverTrust(facts), outcome), environment, &memory)
        }
        switch failure.cause {
        case .clientCertificateRequired where outgoing.certificate == .undecided:
            let request = failure.clientCertificateRequest ?? ClientCertificateRequest(distinguishedNames: [])
            return raise(Question(.clientCertificate(request), outcome), environment, &memory)
        case .clientCertificateUnreadable, .clientKeyMismatch:
            return certificateFailed(failure, .certificateNotUsable, environment, &memory)
        case .clientKeyPassphraseWrong:
            return certificateFailed(failure, .passphraseWrong, environment, &memory)
        case .clientCertificateRefused:
            return certificateFailed(failure, .certificateRefused, environment, &memory)
        case .proxyLoginRefused:
            guard let endpoint = route?.endpoint, endpoint.type == .socks else { return nil }
            let offers = OfferList(socks: endpoint)
            return challenged(Question(.login(offers, .proxy), outcome), offers, .proxy, environment, &memory)
        case .noTicket, .charactersUnsupported:
            return technicalFailure(environment, &memory)
        default:
            return nil
        }
    }

    private mutating func raise(
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        rounds += 1
        guard rounds <= Limits.authenticationRounds else { return tooManyAttempts(server, &memory) }
        return choose(question, environment, &memory)
    }

    /// Rule 8 of the order of schemes (security rules, 6.7): a login that could not even be made leads to a question, and never
    /// silently to a weaker scheme.
    private mutating func technicalFailure(
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep? {
        guard let question = handshakeQuestion, let (attempt, side) = outgoing.handshake, !attempt.isAccepted,
            case .login(_, side) = question.kind
        else { return nil }
        outgoing[side] = nil
        memory.turns.endTrial(by: id, in: attempt.space)
        let challenger = attempt.challenger
        targets[challenger, default: TargetRecord()].noteRejection(of: attempt.challenge, in: attempt.space)
        targets[challenger, default: TargetRecord()].asksBeforeWeaker = true
        return choose(question, environment, &memory)
    }

    // MARK: Server trust

    mutating func choose(
        _ question: Question, _ facts: ServerTrustFacts, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard let leaf = facts.chain.first?.spkiSha256, !leaf.isEmpty else {
            return giveUp(question, environment, &memory)
        }
        if plan.pinnedKey != nil { return giveUp(question, environment, &memory) }
        if let step = useRemembered(facts, leaf, question, environment, &memory) { return step }
        let space = server.space(realm: nil, .serverTrust)
        if let consultation = nextConsultation(for: space, memory) {
            return consult(consultation, then: .question(question))
        }
        guard let respondent = nextRespondent(for: question, in: space) else {
            return verifyNormally(question, facts, environment, &memory)
        }
        // Who pins looks at every certificate itself.
        if plan.trust == .onFailure {
            let key = turnKey(for: space, .find, certificate: facts.chain.first?.sha256, memory)
            guard takeTurn(key, &memory) else { return wait(question, at: .line(key), environment, &memory) }
        }
        return ask(marked(question, facts, memory), respondent, problem: nil, &memory)
    }

    /// Somebody has accepted this key here before; or another one, and the server has a better certificate now.
    private mutating func useRemembered(
        _ facts: ServerTrustFacts, _ leaf: [UInt8], _ question: Question, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep? {
        guard plan.trust == .onFailure, let known = rememberedTrust(memory) else { return nil }
        if known.spkiSha256 == leaf, outgoing.trust != known {
            outgoing.trust = known
            return transfer(environment, &memory)
        }
        if facts.problems.isEmpty {
            outgoing.trust = nil
            return transferVerified(question, environment, &memory)
        }
        return nil
    }

    /// The certificate verifies: what was remembered about an older one has had its day.
    private mutating func transferVerified(
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        if memory.decisions.forgetTrust(at: hop.url.origin) {
            memory.add(.keepTrust(memory.decisions.permanentKeys))
        }
        return transfer(environment, &memory)
    }

    /// Says that the certificate is not the one that was accepted before.
    private func marked(_ question: Question, _ facts: ServerTrustFacts, _ memory: CredentialMemory) -> Question {
        guard let known = rememberedTrust(memory), known.spkiSha256 != facts.chain.first?.spkiSha256 else {
            return question
        }
        var facts = facts
        facts.problems.insert(.changed)
        var marked = Question(.serverTrust(facts), question.outcome)
        marked.declined = question.declined
        marked.waited = question.waited
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
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard case .credential(let credential) = answer else {
            release(answer == .reject ? .rejected : .proceed, .connection, &memory)
            return verifyNormally(question, facts, environment, &memory)
        }
        guard case .trust(let trust) = credential else {
            return ask(question, respondent, problem: .credentialOfWrongType, &memory)
        }
        guard let leaf = facts.chain.first?.spkiSha256, Hexadecimal.bytes(trust.spkiSha256) == leaf else {
            return ask(question, respondent, problem: .fingerprintWrong, &memory)
        }
        let decision = decision(leaf, facts, trust.persistence)
        let space = server.space(realm: nil, .serverTrust)
        note(.trustAccepted, space, nil, respondent.source, trust.persistence, &memory)
        release(.accepted(.trust(decision)), .connection, &memory)
        return self.trust(decision, question, environment, &memory)
    }

    /// Rules 11 and 13: a certificate that verifies is good enough, and any other is not.
    mutating func verifyNormally(
        _ question: Question, _ facts: ServerTrustFacts, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard facts.problems.subtracting([.changed]).isEmpty, let leaf = facts.chain.first?.spkiSha256 else {
            return giveUp(question, environment, &memory)
        }
        release(.passed(declined: question.declined), .connection, &memory)
        return trust(decision(leaf, facts, .none), question, environment, &memory)
    }

    /// Goes on with this certificate, which holds for this fetch alone, until its response has come.
    mutating func trust(
        _ decision: TrustDecision, _ question: Question, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep {
        var decision = decision
        decision.fetch = id
        outgoing.trust = decision
        return transfer(environment, &memory)
    }

    /// What is stored does not flow over an exception (rule 24), nor past a lock: not even what was on its way.
    mutating func dropStored(_ memory: inout CredentialMemory) {
        for side in Side.allCases {
            guard let attempt = outgoing[side], !mayUse(attempt.source, for: attempt.space, memory) else { continue }
            outgoing[side] = nil
            memory.turns.endTrial(by: id, in: attempt.space)
        }
        let space = server.space(realm: nil, .clientCertificate)
        if case .certificate(_, .session) = outgoing.certificate, !mayUseStorage(for: space, memory) {
            outgoing.certificate = .undecided
        }
    }

    // MARK: Client certificates

    mutating func chooseCertificate(
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        if let own = plan.certificate, hop.url.origin == plan.url.origin, !target(server).hasRefused(own) {
            return show(own, .explicit, question, environment, &memory)
        }
        let space = server.space(realm: nil, .clientCertificate)
        if let consultation = nextConsultation(for: space, memory) {
            return consult(consultation, then: .question(question))
        }
        let known = rememberedCertificate(memory)
        if let known, !isAskedFirst(about: .clientCertificate) || question.declined.contains(.client) {
            return show(known, .session, question, environment, &memory)
        }
        guard let respondent = nextRespondent(for: question, in: space) else {
            return giveUp(question, environment, &memory)
        }
        let key = turnKey(for: space, .find, memory)
        guard takeTurn(key, &memory) else { return wait(question, at: .line(key), environment, &memory) }
        return ask(question, respondent, problem: nil, &memory)
    }

    mutating func answeredAboutCertificate(
        _ answer: ChallengeAnswer, by respondent: Respondent, _ question: Question, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard case .credential(let credential) = answer else {
            release(answer == .reject ? .rejected : .proceed, .connection, &memory)
            return goOnWithoutCertificate(question, environment, &memory)
        }
        if credential == .proposed {
            guard let known = rememberedCertificate(memory) else {
                return ask(question, respondent, problem: .nothingProposed, &memory)
            }
            return show(known, .session, question, environment, &memory)
        }
        guard case .certificate(let certificate) = credential else {
            return ask(question, respondent, problem: .credentialOfWrongType, &memory)
        }
        guard !target(server).hasRefused(certificate) else {
            targets[server, default: TargetRecord()].noteRepeatedAnswer()
            return ask(question, respondent, problem: .credentialAlreadyRefused, &memory)
        }
        return show(certificate, respondent.source, question, environment, &memory)
    }

    /// An empty list of certificates (RFC 8446 section 4.4.2): the server decides what becomes of that.
    mutating func goOnWithoutCertificate(
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        release(.passed(declined: question.declined), .connection, &memory)
        outgoing.certificate = .none
        return transfer(environment, &memory)
    }

    mutating func show(
        _ certificate: CertificateCredential, _ source: CredentialSource, _ question: Question,
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        outgoing.certificate = .certificate(certificate, source)
        notedCertificate = nil
        return transfer(environment, &memory)
    }

    /// The certificate that was shown is of no use: it is forgotten if it was remembered, and the question is put again.
    private mutating func certificateFailed(
        _ failure: TransferFailure, _ problem: Challenge.AnswerProblem, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep? {
        guard case .certificate(let certificate, let source) = outgoing.certificate else { return nil }
        outgoing.certificate = .undecided
        if problem == .certificateRefused {
            note(.certificateRefused, server.space(realm: nil, .clientCertificate), nil, source, nil, &memory)
        }
        memory.decisions.forget(certificate, at: hop.url.origin)
        memory.identities.forget { $0.certificate?.isSame(as: certificate) == true }
        targets[server, default: TargetRecord()].noteRefusal(of: certificate)
        let request = failure.clientCertificateRequest ?? ClientCertificateRequest(distinguishedNames: [])
        var question = Question(.clientCertificate(request), .failure(FetchFailure(failure)))
        question.problem = problem
        return raise(question, environment, &memory)
    }
}

extension ClientCertificate {
    init(_ credential: CertificateCredential) {
        self.init(
            certificate: Material(credential.certificate), privateKey: credential.privateKey.map(Material.init),
            passphrase: credential.passphrase)
    }
}

extension ClientCertificate.Material {
    /// Paths and URIs are no secrets; PEM may be.
    init(_ text: Secret) {
        let (path, uri) = text.withUnsafeBytes { bytes in
            let isPath = bytes.first == UInt8(ascii: "/")
            let isURI = bytes.starts(with: "pkcs11:".utf8)
            let name = isPath || isURI ? String(validating: bytes, as: UTF8.self) : nil
            return (isPath ? name : nil, isURI ? name : nil)
        }
        self = path.map { .file($0) } ?? uri.map { .token(uri: $0) } ?? .bytes(text)
    }
}

internal import WatchwordProtocol

/// Which certificate a server gets that asks for one: semantics rules 11 and 13; security rules C1 to C3.
extension FetchMachine {
    mutating func chooseCertificate(
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        if let own = plan.certificate, hop.url.origin == plan.url.origin, !target(server).hasRefused(own) {
            return show(own, .explicit, question, environment, &memory)
        }
        let space = server.space(realm: nil, .clientCertificate)
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned, let consultation = nextConsultation(for: space, memory) {
            return consult(consultation, then: .question(question))
        }
        let known = rememberedCertificate(memory)
        if let known, !isAbandoned, !asksFirst(in: space, after: question.declined) {
            return confirmCertificate(home: known.home, question, environment, &memory)
                ?? show(known.certificate, .session, question, environment, &memory)
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
            release(
                answer == .reject ? .rejected(by: respondent) : .proceed, answeredBy: respondent, .connection, &memory)
            return goOnWithoutCertificate(question, environment, &memory)
        }
        if credential == .proposed {
            guard let known = rememberedCertificate(memory) else {
                return ask(question, respondent, problem: .nothingProposed, &memory)
            }
            return confirmCertificate(home: known.home, question, environment, &memory)
                ?? show(known.certificate, .session, question, environment, &memory)
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
        outgoing.certificateMark = question.mark ?? memory.forgets.mark
        notedCertificate = nil
        return transfer(environment, &memory)
    }

    /// The certificate that was shown is of no use: it is forgotten if it was remembered, and the question is put again.
    mutating func certificateFailed(
        _ failure: TransferFailure, _ problem: Challenge.AnswerProblem, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep? {
        guard case .certificate(let certificate, let source) = outgoing.certificate else { return nil }
        outgoing.certificate = .undecided
        if problem == .certificateRefused {
            note(.certificateRefused, server.space(realm: nil, .clientCertificate), nil, source, nil, &memory)
        }
        let space = server.space(realm: nil, .clientCertificate)
        judge(space, nil, isAccepted: false, &memory)
        if memory.decisions.forget(certificate, at: hop.url.origin) {
            memory.add(.changed(CredentialChange(.forgotten, space)))
        }
        memory.identities.forget { $0.certificate?.isSame(as: certificate) == true }
        // What the file holds now has not been refused.
        if problem != .certificateChanged { targets[server, default: TargetRecord()].noteRefusal(of: certificate) }
        var question = Question(.clientCertificate(certificateRequest), .failure(FetchFailure(failure)))
        question.problem = problem
        return raise(question, environment, &memory)
    }
}

extension ClientCertificate {
    init(_ credential: CertificateCredential) {
        self.init(
            certificate: Material(credential.certificate), privateKey: credential.privateKey.map(Material.init),
            passphrase: credential.passphrase)
        expectedContent = credential.acceptedContent
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

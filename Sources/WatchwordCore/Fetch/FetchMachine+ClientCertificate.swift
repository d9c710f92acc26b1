internal import WatchwordProtocol

/// Which certificate a server gets that asks for one: semantics rules 11 and 13; security rules C1 to C3.
extension FetchMachine {
    mutating func chooseCertificate(
        _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        if let own = plan.certificate, hop.url.origin == plan.url.origin, !target(server).hasRefused(own) {
            return show(own, .explicit, question, &context)
        }
        let space = server.space(realm: nil, .clientCertificate)
        let isAbandoned = question.declined.isAbandoned
        if !isAbandoned, let consultation = nextConsultation(for: space, context) {
            return consult(consultation, then: .question(question))
        }
        let known = rememberedCertificate(context)
        if let known, !isAbandoned, !asksFirst(in: space, after: question.declined) {
            return confirmCertificate(home: known.home, question, &context)
                ?? show(known.certificate, .session, question, &context)
        }
        guard let respondent = nextRespondent(for: question, in: space) else {
            return giveUp(question, &context)
        }
        let key = turnKey(for: space, .find, context)
        guard takeTurn(key, &context) else { return wait(question, at: .line(key), &context) }
        return ask(question, respondent, problem: nil, &context)
    }

    mutating func answeredAboutCertificate(
        _ answer: ChallengeAnswer, by respondent: Respondent, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        guard case .credential(let credential) = answer else {
            release(
                answer == .reject ? .rejected(by: respondent) : .proceed, answeredBy: respondent, .connection, &context)
            return goOnWithoutCertificate(question, &context)
        }
        if credential == .proposed {
            guard let known = rememberedCertificate(context) else {
                return ask(question, respondent, problem: .nothingProposed, &context)
            }
            return confirmCertificate(home: known.home, question, &context)
                ?? show(known.certificate, .session, question, &context)
        }
        guard case .certificate(let certificate) = credential else {
            return ask(question, respondent, problem: .credentialOfWrongType, &context)
        }
        guard !target(server).hasRefused(certificate) else {
            targets[server, default: TargetRecord()].noteRepeatedAnswer()
            return ask(question, respondent, problem: .credentialAlreadyRefused, &context)
        }
        return show(certificate, respondent.source, question, &context)
    }

    /// An empty list of certificates (RFC 8446 section 4.4.2): the server decides what becomes of that.
    mutating func goOnWithoutCertificate(
        _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        release(.passed(declined: question.declined), .connection, &context)
        outgoing.certificate = .none
        return transfer(&context)
    }

    mutating func show(
        _ certificate: CertificateCredential, _ source: CredentialSource, _ question: Question,
        _ context: inout FetchContext
    ) -> FetchStep {
        outgoing.certificate = .certificate(certificate, source)
        outgoing.certificateMark = question.mark ?? context.forgets.mark
        notedCertificate = nil
        return transfer(&context)
    }

    /// The certificate that was shown is of no use: it is forgotten if it was remembered, and the question is put again.
    mutating func certificateFailed(
        _ failure: TransferFailure, _ problem: Challenge.AnswerProblem, _ context: inout FetchContext
    ) -> FetchStep? {
        guard case .certificate(let certificate, let source) = outgoing.certificate else { return nil }
        outgoing.certificate = .undecided
        if problem == .certificateRefused {
            note(.certificateRefused, server.space(realm: nil, .clientCertificate), nil, source, nil, &context)
        }
        let space = server.space(realm: nil, .clientCertificate)
        judge(space, nil, isAccepted: false, &context)
        if context.decisions.forget(certificate, at: hop.url.origin) {
            context.add(.changed(CredentialChange(.forgotten, space)))
        }
        context.identities.forget { $0.certificate?.isSame(as: certificate) == true }
        // What the file holds now has not been refused.
        if problem != .certificateChanged { targets[server, default: TargetRecord()].noteRefusal(of: certificate) }
        var question = Question(.clientCertificate(certificateRequest), .failure(FetchFailure(failure)))
        question.problem = problem
        return raise(question, &context)
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

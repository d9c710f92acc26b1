internal import WatchwordProtocol

/// Decisions about questions. Each kind of question has a resolution type of its own, which determines the next step.
extension FetchMachine {
    mutating func choose(_ question: Question, _ context: inout FetchContext) -> FetchCommand {
        switch question.kind {
        case .login: take(logins.choose(question, &hop, &context), &context)
        case .serverTrust(let facts): take(trust.choose(question, facts, &hop, &context), &context)
        case .clientCertificate: take(certificate.choose(question, &hop, &context), &context)
        }
    }

    mutating func resolution(
        of question: Question, _ answer: ChallengeAnswer, by respondent: Respondent, _ context: inout FetchContext
    ) -> Resolution {
        switch question.kind {
        case .login: logins.answered(answer, by: respondent, question, &hop, &context)
        case .serverTrust(let facts):
            trust.answered(answer, by: respondent, about: facts, question, &hop, &context)
        case .clientCertificate:
            certificate.answered(answer, by: respondent, question, &hop, &context)
        }
    }

    /// Returns the step for the outcome of a resolution.
    mutating func take(_ resolution: Resolution, _ context: inout FetchContext) -> FetchCommand {
        switch resolution {
        case .send: return transfer(&context)
        case .ask(let question, let respondent, let problem): return ask(question, respondent, problem, &context)
        case .consult(let consultation, let question): return consult(consultation, then: .question(question))
        case .confirm(let question, let use, let request):
            state = .confirming(question, use, epoch: context.consents.epoch)
            return .confirm(request)
        case .lookUp(let question, let queries):
            state = .lookingUp(question, since: context.now)
            return .lookUp(queries)
        case .readNetrc(let question, let query):
            state = .lookingUp(question, since: context.now)
            return .readNetrc(query)
        case .obtainToken(let question, let query):
            state = .lookingUp(question, since: context.now)
            return .obtainToken(query)
        case .wait(let question, let place): return pause(.question(question), question.slot, at: place, &context)
        case .needBody:
            state = .needingBody
            return .needBody
        case .chooseAgain(let question): return choose(question, &context)
        case .endUnanswered(let question): return endUnanswered(question, &context)
        case .fail(let failure): return fail(failure, &context)
        }
    }

    private mutating func ask(
        _ question: Question, _ respondent: Respondent, _ problem: Challenge.AnswerProblem?,
        _ context: inout FetchContext
    ) -> FetchCommand {
        if problem != nil, !hop.beginRound() {
            return fail(.tooManyRounds(at: hop.challenger(of: question)), &context)
        }
        let challenge = hop.challenge(
            for: question, at: respondent, problem: problem,
            proposesCertificate: certificate.proposes(hop, context), context)
        guard let challenge else { return fail(.unexpectedEvent, &context) }
        var question = question
        question.mark = context.forgets.mark
        state = .asking(question, respondent)
        return .ask(challenge, respondent)
    }

    mutating func consult(_ consultation: Consultation, then interrupted: InterruptedStep) -> FetchCommand {
        state = .consulting(consultation, then: interrupted)
        return .consult(consultation)
    }

    /// Ends a question without an answer. The result of the fetch is the response that challenged, or the failure that
    /// raised the question. If the server requested a certificate, the fetch continues without one.
    private mutating func endUnanswered(_ question: Question, _ context: inout FetchContext) -> FetchCommand {
        hop.leases.release(.passed(declined: question.declined), question.slot, &context)
        // If a certificate was refused or unusable, the fetch fails, unless a respondent has declined to supply another
        // one.
        if case .clientCertificate = question.kind, question.problem == nil || question.declined.hasBeenAsked {
            // The request follows a question that was never answered, so it uses no stored credentials (SECURITY-RULES
            // X1).
            if question.declined.isAbandoned { hop.renounceStorage() }
            return take(certificate.continueWithout(question, &hop, &context), &context)
        }
        if let obstacle = question.obstacle { return fail(obstacle, &context) }
        switch question.outcome {
        case .response(let response):
            return finish(response, unanswered: logins.unanswered(question, hop, context), &context)
        case .failure(let failure): return fail(failure, &context)
        }
    }

    // MARK: Failures that raise a question

    /// Returns the step after a failure that raises a question or allows a retry; `nil` for any other failure.
    mutating func question(about failure: TransferFailure, _ context: inout FetchContext) -> FetchCommand? {
        let outcome = Question.Outcome.failure(FetchFailure(failure))
        if let request = failure.clientCertificateRequest {
            hop[chain.server].certificateRequest = request
        }
        if failure.kind == .serverNotTrusted, let facts = failure.serverTrust, !facts.chain.isEmpty {
            return raise(Question(.serverTrust(facts), outcome), &context)
        }
        if let problem = failure.cause?.problemWithCertificate {
            return certificate.failed(failure, problem, &hop, &context).map { raise($0, &context) }
        }
        let resolution: Resolution?
        switch failure.cause {
        case .clientCertificateRequired where certificate.decision == .undecided:
            return raise(Question(.clientCertificate(certificate.request(hop)), outcome), &context)
        case .proxyLoginRefused:
            guard let endpoint = chain.route?.endpoint, endpoint.type == .socks else { return nil }
            resolution = logins.challenged(
                Question(.login(OfferList(socks: endpoint), .proxy), outcome), &hop, &context)
        case .noTicket, .charactersUnsupported:
            resolution = logins.technicalFailure(nil, &hop, &context)
        case .channelChanged(let serverEndPoint):
            resolution =
                logins.bindAgain(serverEndPoint) ?? logins.technicalFailure(FetchFailure(failure), &hop, &context)
        case .loginConnectionEnded:
            guard hop.beginRound() else { return nil }
            logins.logInAgain(hop, context)
            resolution = .send
        case .ntlmChallengeUnusable, .ntlmNotContinued:
            resolution = logins.technicalFailure(FetchFailure(failure), &hop, &context)
        default:
            return nil
        }
        return resolution.map { take($0, &context) }
    }

    private mutating func raise(_ question: Question, _ context: inout FetchContext) -> FetchCommand {
        guard hop.beginRound() else { return fail(.tooManyRounds(at: chain.server), &context) }
        return choose(question, &context)
    }
}

extension TransferFailure.Cause {
    /// The problem with the client certificate, if that is the cause.
    fileprivate var problemWithCertificate: Challenge.AnswerProblem? {
        switch self {
        case .clientCertificateUnreadable, .clientKeyMismatch: .certificateNotUsable
        case .clientCertificateChanged: .certificateChanged
        case .clientKeyExposed: .keyExposed
        case .clientKeyPassphraseWrong: .passphraseWrong
        case .tokenPINNotTried: .pinNotTried
        case .clientCertificateRefused: .certificateRefused
        default: nil
        }
    }
}

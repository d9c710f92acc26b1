internal import WatchwordProtocol

/// The state machine of one fetch: it decides which request is sent with which credential, which respondent is asked,
/// and when the fetch ends.
///
/// Performs no I/O and reads no clock: each event returns the next command, and every command except `finish` and
/// `fail` is followed by exactly one event with its outcome.
struct FetchMachine: Sendable {
    enum State: Sendable {
        case ready
        case transferring(since: Duration)
        indirect case consulting(Consultation, then: InterruptedStep)
        indirect case waiting(WaitingStep, at: AuthenticationQueues.QueuePosition, since: Duration)
        indirect case lookingUp(Question, since: Duration)
        indirect case findingUpstreams(from: Origin?, since: Duration)
        indirect case asking(Question, Respondent)
        indirect case confirming(Question, ConsentBook.Use, epoch: Int)
        case needingBody
        case finished
    }

    /// The step that a consultation has interrupted.
    enum InterruptedStep: Sendable {
        case hop
        case question(Question)
        /// The response is the result if the redirect is not followed.
        case redirect(TransferResponse, HopRequest)
    }

    /// The hop with its permissions, its leases and consents, which the following parts share.
    var hop: HopState
    var logins = LoginResolution()
    var trust = ServerTrustResolution()
    var certificate = ClientCertificateResolution()
    var state = State.ready
    var time: TimeBudget
    var body = RequestBodyResolution()
    var exchanges = 0

    init(_ request: SharedFetchRequest) {
        time = TimeBudget(request.value)
        hop = HopState(request)
    }

    var fetch: SharedFetchRequest { hop.fetch }
    /// For reading. Changes are made to `hop.chain`.
    var chain: RedirectChain { _read { yield hop.chain } }

    var isTransferring: Bool { if case .transferring = state { true } else { false } }
    var isWaiting: Bool { if case .waiting = state { true } else { false } }

    // MARK: Events

    /// Returns the next command; `nil` if the event is `timePassed` and no limit was reached.
    mutating func handle(_ event: FetchTable.Event, _ context: inout FetchContext) -> FetchCommand? {
        // Without a request under way, there is no verdict to wait for.
        defer { if !isTransferring { context.endAttempt(by: fetch.id) } }
        return switch (state, event) {
        case (_, .timePassed): timePassed(&context)
        case (_, .transferReported(let event)): record(event, &context)
        case (_, .aborted(let failure)): abort(failure, &context)
        case (.ready, .started): enterHop(from: nil, &context)
        case (.transferring(let since), .received(let response)): received(response, since: since, &context)
        case (.transferring(let since), .failed(let failure)): failed(failure, since: since, &context)
        case (.asking(let question, let respondent), .answered(let answer)):
            answered(answer, by: respondent, question, &context)
        case (.asking(let question, let respondent), .loggedIn(let token)):
            loggedIn(token, by: respondent, question, &context)
        case (.asking(let question, let respondent), .unanswered):
            passed(question, &context) { $0.recordSilence(of: respondent) }
        case (.asking(let question, let respondent), .notAsked(let cause)):
            passed(question, &context) { $0.recordUnasked(respondent, because: cause) }
        case (.consulting(let consultation, let interrupted), .consulted(let answer)):
            consulted(answer, about: consultation, interrupted, &context)
        case (.confirming(let question, let use, let epoch), .confirmed(let consent)):
            confirmed(consent, to: use, epoch: epoch, question, &context)
        case (.lookingUp(let question, let since), .found(let finding)):
            found(finding, question, since: since, &context)
        case (.findingUpstreams(let previous, let since), .foundUpstreams):
            foundUpstreams(for: previous, since: since, &context)
        case (.waiting(let step, let place, let since), .resumed(let wake)):
            resumed(wake, step, at: place, since: since, &context)
        case (.needingBody, .supplied(let supplied)):
            take(body.supplied(supplied, &hop), &context)
        // No other state waits for these events.
        case (_, .started), (_, .received), (_, .failed), (_, .answered), (_, .loggedIn), (_, .unanswered),
            (_, .notAsked), (_, .consulted), (_, .confirmed), (_, .found), (_, .foundUpstreams),
            (_, .supplied), (_, .resumed):
            fail(.unexpectedEvent, &context)
        }
    }

    private mutating func timePassed(_ context: inout FetchContext) -> FetchCommand? {
        switch state {
        case .transferring(let since): releaseLeasesOfSlowResponse(since: since, &context)
        case .lookingUp(_, let since), .findingUpstreams(_, let since):
            time.isUsedUp(at: context.now, inWaitSince: since) ? fail(timeoutFailure, &context) : nil
        case .waiting(let step, let place, let since): endOverdueWait(step, at: place, since: since, &context)
        case .ready, .asking, .consulting, .confirming, .needingBody, .finished: nil
        }
    }

    private mutating func record(_ event: TransferEvent, _ context: inout FetchContext) -> FetchCommand? {
        // The transfer may have failed for another reason meanwhile.
        if isTransferring { logins.record(event, &hop, &context) }
        return nil
    }

    /// Handles the response of a transfer.
    private mutating func received(
        _ response: TransferResponse, since: Duration, _ context: inout FetchContext
    ) -> FetchCommand {
        time.recordNetwork(context.now - since)
        body.record(response.requestBody)
        hop.chain.cookies.record(response, of: chain.origin)
        if let endpoint = chain.route?.endpoint { context.upstreams.recordSuccess(of: endpoint) }
        if logins.outgoing.server?.credential.binding != nil {
            context.proofNonces.record(response.headers.firstValue(of: TokenProof.nonceField), of: chain.origin)
        }
        if fetch.reportsExchanges { context.notify(.answered(ResponseSummary(response)), of: fetch.id) }
        return evaluated(response, &context)
    }

    /// Handles a challenge of the proxy or the server. Any other response is followed as a redirect or becomes the
    /// result.
    private mutating func evaluated(_ response: TransferResponse, _ context: inout FetchContext) -> FetchCommand {
        if let question = logins.question(raisedBy: response, at: .proxy, hop, context) {
            return take(logins.challenged(question, &hop, &context), &context)
        }
        if let resolution = logins.repeatWithoutChallenge(response, at: .proxy, &hop, &context) {
            return take(resolution, &context)
        }
        recordConnection(response, &context)
        if let failure = logins.recordProxyAcceptance(response, &hop, &context) { return fail(failure, &context) }
        // guard: front-authorization-of-the-program
        if fetch.originLogin == .broker,
            let question = logins.question(raisedBy: response, at: .server, hop, context)
        {
            return take(logins.challenged(question, &hop, &context), &context)
        }
        if let resolution = logins.repeatWithoutChallenge(response, at: .server, &hop, &context) {
            return take(resolution, &context)
        }
        if let failure = logins.recordServerAcceptance(response, &hop, &context) { return fail(failure, &context) }
        context.endAttempt(by: fetch.id)
        return redirect(response, &context) ?? finish(response, &context)
    }

    /// Records that the server has responded on this connection, with its client certificate and trust decision.
    private mutating func recordConnection(_ response: TransferResponse, _ context: inout FetchContext) {
        guard chain.isSecure, !response.isFromProxy else { return }
        certificate.recordResponse(response, &hop, &context)
        trust.recordResponse(hop, &context)
        hop.leases.release(.passed(declined: []), .connection, &context)
    }

    private mutating func failed(
        _ failure: TransferFailure, since: Duration, _ context: inout FetchContext
    ) -> FetchCommand {
        time.recordNetwork(context.now - since)
        body.record(failure.requestBody)
        logins.recordTunnel(failure, &hop, &context)
        // A refusal by SOCKS is recorded as one below.
        if failure.cause != .proxyLoginRefused {  // guard: attempt-refused-by-socks
            // guard: attempt-lost
            context.endAttempt(by: fetch.id, failure.mayHaveSentLogin ? .lost : .none)
        }
        if let step = failOver(after: failure, &context) { return step }
        if failure.kind == .requestBodyGone, case .stream? = chain.hop.body {
            return take(body.sendAgain(&hop), &context)
        }
        return question(about: failure, &context) ?? fail(FetchFailure(failure), &context)
    }

    private mutating func abort(_ failure: FetchFailure, _ context: inout FetchContext) -> FetchCommand {
        context.endAttempt(by: fetch.id, isTransferring ? .lost : .none)
        return fail(failure, &context)
    }

    private mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, _ question: Question, _ context: inout FetchContext
    ) -> FetchCommand {
        var question = question
        time.endQueue(context.now)
        if answer != .useDefault { question.declined.recordAnswer() }
        switch answer {
        case .cancel:
            hop.leases.release(.cancelled(by: respondent), answeredBy: respondent, question.slot, &context)
            return fail(.challengeCancelled(at: hop.challenger(of: question)), &context)
        case .useDefault:
            question.declined.recordDefault(of: respondent)
            return choose(question, &context)
        case .credential, .proceed, .reject:
            return take(resolution(of: question, answer, by: respondent, &context), &context)
        }
    }

    private mutating func loggedIn(
        _ token: LoginCredential, by respondent: Respondent, _ question: Question, _ context: inout FetchContext
    ) -> FetchCommand {
        logins.recordConsent(of: question, &hop, &context)
        logins.recordLogin(token, question, &hop)
        // If the token is of no use, the next question must not show a login that is over.
        var question = question
        question.login = nil
        return answered(.credential(.login(token)), by: respondent, question, &context)
    }

    /// Handles a question without an answer. The next respondent is asked, as after `default`; if there is none, the
    /// question ends without an answer (`endUnanswered`). A missing answer never causes a credential to be sent
    /// (SECURITY-RULES X1).
    private mutating func passed(
        _ question: Question, _ context: inout FetchContext, record: (inout PassedRespondents) -> Void
    ) -> FetchCommand {
        var question = question
        time.endQueue(context.now)
        record(&question.declined)
        return choose(question, &context)
    }

    private mutating func consulted(
        _ answer: Bool?, about consultation: Consultation, _ interrupted: InterruptedStep, _ context: inout FetchContext
    ) -> FetchCommand {
        hop.record(answer, to: consultation)
        switch interrupted {
        case .hop: return startHop(&context)
        case .question(let question): return choose(question, &context)
        case .redirect(let response, let next):
            // guard: redirect-without-approval
            return answer == true ? follow(next, after: response, &context) : finish(response, &context)
        }
    }

    private mutating func confirmed(
        _ consent: Consent?, to use: ConsentBook.Use, epoch: Int, _ question: Question, _ context: inout FetchContext
    ) -> FetchCommand {
        time.endQueue(context.now)
        hop.consent.record(consent, to: use, epoch: epoch, &context)
        return choose(question, &context)
    }

    private mutating func found(
        _ finding: FetchTable.Finding, _ question: Question, since: Duration, _ context: inout FetchContext
    ) -> FetchCommand {
        time.recordWait(context.now - since)
        let challenger = hop.challenger(of: question)
        switch finding {
        case .items(let result):
            let items = try? result.get()
            hop[challenger].keyringItems?.record(items)
            context.keyring.recordPaths(
                of: items ?? [], at: challenger, time: context.environment.sinceEpoch, now: context.now)
        case .logins(let found, let source):
            hop[challenger].netrcLogins?.logins = found
            hop[challenger].netrcLogins?.source = source
        case .token(let outcome): logins.record(outcome, for: question, &hop)
        }
        return choose(question, &context)
    }
}

extension TransferFailure {
    /// Whether the server or the proxy may have checked a login of the request, although no response has arrived.
    fileprivate var mayHaveSentLogin: Bool {
        if hasUnansweredLogin { return true }
        guard hasSentRequest else { return false }
        return switch cause {
        case .proxyRefused(.some), .clientCertificateRequired, .clientCertificateRefused, .channelChanged,
            .charactersUnsupported, .ntlmChallengeUnusable:
            false
        default: true
        }
    }
}

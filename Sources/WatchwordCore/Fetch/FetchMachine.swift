internal import WatchwordProtocol

/// Decides, step by step, what one fetch does: which request goes out, with which credential, who is asked, when it ends.
///
/// It makes no request, asks nobody and knows no clock: each event returns the next action, and every action but the last
/// two is answered by exactly one event. What a question comes to is decided by the resolution that it is for.
struct FetchMachine: Sendable {
    enum State: Sendable {
        case ready
        case transferring(since: Duration)
        indirect case consulting(Consultation, then: Suspended)
        indirect case waiting(Paused, at: SpaceTurns.WaitingPlace, since: Duration)
        indirect case lookingUp(Question, since: Duration)
        indirect case asking(Question, Respondent)
        indirect case confirming(Question, GrantBook.Use, epoch: Int)
        case needingBody
        case finished
    }

    /// What a consultation has interrupted.
    enum Suspended: Sendable {
        case hop([FetchEvent])
        case question(Question)
        /// The response is the result unless it is followed.
        case redirect(TransferResponse, HopRequest)
    }

    /// What happens to a fetch.
    enum Event: Sendable {
        case started
        case received(TransferResponse)
        /// A transfer gave no response.
        case failed(TransferFailure)
        /// The answer to the last `ask`.
        case answered(ChallengeAnswer)
        /// Nobody answers the last `ask`: the connection or the time of the respondent is over, or it failed.
        case unanswered
        /// Whom the last `ask` is for cannot be asked.
        case notAsked(Unanswered.NoRespondent)
        /// The answer to the last `consult`; `nil` when there is none.
        case consulted(Bool?)
        /// The answer to the last `confirm`; `nil` when nobody has given one.
        case confirmed(Consent?)
        /// What the keyring gave to the last `lookUp`; `nil` where it could not be used.
        case found([KeyringItem]?)
        /// The logins of the netrc file; none where it could not be used.
        case foundInNetrc([Netrc.Login])
        /// The client has given the body again; `nil` when it has not.
        case given(RequestBody?)
        /// News for a fetch that waits.
        case resumed(SpaceTurns.Wake)
        case timePassed
        /// Something outside ended the fetch: its client is gone or has cancelled it, or its answer was not understood.
        case aborted(FetchFailure)
    }

    let intent: FetchIntent
    var logins: LoginResolution
    var trust = ServerTrustResolution()
    var certificate = ClientCertificateResolution()
    var state = State.ready
    var time: TimeBudget
    /// Of a request's body that comes through a socket.
    var bodyState = RequestBodyState.untouched
    var exchanges = 0

    init(_ plan: FetchPlan, id: FetchID, client: SpaceTurns.Client, access: Access, lastRefusal: Int) {
        intent = FetchIntent(plan, id: id, client: client, access: access, lastRefusal: lastRefusal)
        logins = LoginResolution(intent)
        time = TimeBudget(plan)
    }

    /// To look at; it is changed where it is.
    var chain: RedirectChain { logins.search.situation.chain }

    // MARK: Events

    /// The next step; `nil` where time has passed, and that changes nothing.
    mutating func handle(_ event: Event, _ context: inout FetchContext) -> FetchStep? {
        switch (state, event) {
        case (.ready, .started): enterHop(from: nil, &context, events: [])
        case (.transferring(let since), .received(let response)): received(response, since: since, &context)
        case (.transferring(let since), .failed(let failure)): failed(failure, since: since, &context)
        case (.transferring(let since), .timePassed): transferGoesOn(since: since, &context)
        case (.asking(let question, let respondent), .answered(let answer)):
            answered(answer, by: respondent, question, &context)
        case (.asking(let question, let respondent), .unanswered):
            passed(question, &context) { $0.noteSilence(of: respondent) }
        case (.asking(let question, let respondent), .notAsked(let cause)):
            passed(question, &context) { $0.noteUnasked(respondent, because: cause) }
        case (.consulting(let consultation, let suspended), .consulted(let answer)):
            consulted(answer, about: consultation, suspended, &context)
        case (.confirming(let question, let use, let epoch), .confirmed(let consent)):
            confirmed(consent, to: use, epoch: epoch, question, &context)
        case (.lookingUp(let question, let since), .found(let items)): found(items, question, since: since, &context)
        case (.lookingUp(let question, let since), .foundInNetrc(let logins)):
            foundInNetrc(logins, question, since: since, &context)
        case (.lookingUp(_, let since), .timePassed):
            time.isUsedUp(at: context.now, inWaitSince: since) ? fail(timeoutFailure, &context) : nil
        case (.waiting(let paused, let place, let since), .resumed(let wake)):
            resumed(wake, paused, at: place, since: since, &context)
        case (.waiting(let paused, let place, let since), .timePassed):
            waitGoesOn(paused, at: place, since: since, &context)
        case (.needingBody, .given(let body)): given(body, &context)
        case (.ready, .timePassed), (.asking, .timePassed), (.consulting, .timePassed), (.confirming, .timePassed),
            (.needingBody, .timePassed), (.finished, .timePassed):
            nil
        case (.ready, .aborted(let failure)), (.transferring, .aborted(let failure)), (.asking, .aborted(let failure)),
            (.consulting, .aborted(let failure)), (.confirming, .aborted(let failure)),
            (.lookingUp, .aborted(let failure)), (.waiting, .aborted(let failure)),
            (.needingBody, .aborted(let failure)):
            fail(failure, &context)
        default: fail(.unexpectedEvent, &context)
        }
    }

    /// A transfer gave a response.
    private mutating func received(
        _ response: TransferResponse, since: Duration, _ context: inout FetchContext
    ) -> FetchStep {
        time.noteNetwork(context.now - since)
        bodyState = response.requestBody
        var step = judged(response, &context)
        if intent.plan.reportsExchanges { step.events.insert(.answered(ResponseSummary(response)), at: 0) }
        return step
    }

    /// A challenge of the proxy or the server; else it accepts the login, redirects, or is the result.
    private mutating func judged(_ response: TransferResponse, _ context: inout FetchContext) -> FetchStep {
        if let question = logins.question(raisedBy: response, at: .proxy, context) {
            return take(logins.challenged(question, &context), &context)
        }
        noteConnection(response, &context)
        if let failure = logins.noteProxyAcceptance(response, &context) { return fail(failure, &context) }
        if let question = logins.question(raisedBy: response, at: .server, context) {
            return take(logins.challenged(question, &context), &context)
        }
        if let failure = logins.noteServerAcceptance(response, &context) { return fail(failure, &context) }
        context.turns.endTrial(by: intent.id)
        return redirect(response, &context) ?? finish(response, &context)
    }

    /// What the connection was made with is good.
    private mutating func noteConnection(_ response: TransferResponse, _ context: inout FetchContext) {
        guard chain.isSecure, !response.isFromProxy else { return }
        certificate.noteResponse(response, &logins.search.situation, &context)
        trust.noteResponse(logins.search.situation, &context)
        logins.search.situation.turns.release(.passed(declined: []), .connection, &context)
    }

    private mutating func failed(
        _ failure: TransferFailure, since: Duration, _ context: inout FetchContext
    ) -> FetchStep {
        time.noteNetwork(context.now - since)
        bodyState = failure.requestBody
        logins.noteTunnel(failure, &context)
        context.turns.endTrial(by: intent.id)
        if failure.kind == .requestBodyGone, case .stream? = chain.hop.body { return sendAgain(&context) }
        return question(about: failure, &context) ?? fail(FetchFailure(failure), &context)
    }

    private mutating func answered(
        _ answer: ChallengeAnswer, by respondent: Respondent, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        var question = question
        time.endQueue(context.now)
        if answer != .useDefault { question.declined.noteAnswer() }
        switch answer {
        case .cancel:
            logins.search.situation.turns.release(
                .cancelled(by: respondent), answeredBy: respondent, question.slot, &context)
            return fail(.challengeCancelled(at: logins.search.situation.challenger(of: question)), &context)
        case .useDefault:
            question.declined.noteDefault(of: respondent)
            return choose(question, &context)
        case .credential, .proceed, .reject:
            return take(resolution(of: question, answer, by: respondent, &context), &context)
        }
    }

    /// Nobody has answered. The next respondent has the question, as after `default`; after the last one the challenge is the
    /// result. That never sends a credential (security rule X1).
    private mutating func passed(
        _ question: Question, _ context: inout FetchContext, note: (inout PassedRespondents) -> Void
    ) -> FetchStep {
        var question = question
        time.endQueue(context.now)
        note(&question.declined)
        return choose(question, &context)
    }

    private mutating func consulted(
        _ answer: Bool?, about consultation: Consultation, _ suspended: Suspended, _ context: inout FetchContext
    ) -> FetchStep {
        logins.search.situation.note(answer, to: consultation)
        switch suspended {
        case .hop(let events): return startHop(&context, events: events)
        case .question(let question): return choose(question, &context)
        case .redirect(let response, let next):
            return answer == true ? follow(next, after: response, &context) : finish(response, &context)
        }
    }

    private mutating func confirmed(
        _ consent: Consent?, to use: GrantBook.Use, epoch: Int, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        time.endQueue(context.now)
        logins.search.situation.consent.note(consent, to: use, epoch: epoch, &context)
        return choose(question, &context)
    }

    private mutating func found(
        _ result: [KeyringItem]?, _ question: Question, since: Duration, _ context: inout FetchContext
    ) -> FetchStep {
        time.noteWait(context.now - since)
        let challenger = logins.search.situation.challenger(of: question)
        logins.search.situation[challenger].keyringItems?.note(result)
        context.keyring.notePaths(
            of: result ?? [], at: challenger, time: context.environment.sinceEpoch, now: context.now)
        return choose(question, &context)
    }

    private mutating func foundInNetrc(
        _ logins: [Netrc.Login], _ question: Question, since: Duration, _ context: inout FetchContext
    ) -> FetchStep {
        time.noteWait(context.now - since)
        self.logins.search.situation[self.logins.search.situation.challenger(of: question)].netrcLogins?.logins = logins
        return choose(question, &context)
    }
}

internal import WatchwordProtocol

/// Decides, step by step, what one fetch does: which request goes out, with which credential, who is asked, when it ends.
///
/// It makes no request, asks nobody and knows no clock: each event returns the next action, and every action but the last
/// two is answered by exactly one event. What fetches share is lent to it for the length of an event.
struct FetchMachine: Sendable {
    /// - `ready` → `transferring`, `consulting`, `finished`
    /// - `transferring` → `transferring` (another attempt, or a redirect), `consulting`, `waiting`, `lookingUp`, `asking`,
    ///   `finished`
    /// - `consulting` → what `ready` or a challenged `transferring` leads to
    /// - `waiting` → `transferring`, `waiting` (in another line), `lookingUp`, `asking`, `finished`
    /// - `lookingUp` → `transferring`, `asking`, `finished`
    /// - `asking` → `transferring`, `consulting` (a scheme was rejected), `waiting`, `lookingUp`, `asking`, `finished`
    /// - `confirming` → whatever the challenge leads to with that consent, or without; every state that leads to
    ///   `transferring` may lead to it
    /// - `needingBody` → `transferring`, `finished`; every state that leads to `transferring` may lead to it
    /// - `finished`: nothing follows.
    enum State: Sendable {
        case ready
        /// What the request carries is in `outgoing`.
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

    let id: FetchID
    let client: SpaceTurns.Client
    /// What of that which is kept it may use.
    let access: Access
    let plan: FetchPlan
    var hop: HopRequest
    /// The proxy of this hop.
    var route: ProxyRoute?
    var outgoing = Outgoing()
    /// What the last login of a connection in this hop is the answer to.
    var handshakeQuestion: Question?
    var state = State.ready
    /// The lines in which it is this fetch's turn.
    var heldTurns: [TurnSlot: SpaceTurns.Key] = [:]
    /// What somebody has said to the use of what is kept, in this fetch.
    var consents: [GrantBook.Use: Bool] = [:]
    /// What the client said to `useStorage`; `nil` before it was asked.
    var storageAnswer: Bool?
    /// The last refusal of another fetch before this one: what comes later is news to it.
    let lastRefusalBefore: Int
    /// Failed attempts and so on, of each server and proxy.
    var targets: [Challenger: TargetRecord] = [:]
    var time: TimeBudget
    var exchanges = 0
    var rounds = 0
    var redirects = 0
    var hasAuthenticated = false
    /// Where the certificate of now was shown, once that is in the account.
    var notedCertificate: Origin?
    /// Of a request's body that comes through a socket.
    var bodyState = RequestBodyState.untouched

    init(_ plan: FetchPlan, id: FetchID, client: SpaceTurns.Client, access: Access, lastRefusal: Int) {
        self.lastRefusalBefore = lastRefusal
        time = TimeBudget(plan)
        self.plan = plan
        self.id = id
        self.client = client
        self.access = access
        self.hop = HopRequest(url: plan.url, method: plan.method, headers: plan.headers, body: plan.body)
    }

    var server: Challenger { .server(hop.url.origin) }

    func target(_ challenger: Challenger) -> TargetRecord { targets[challenger] ?? TargetRecord() }

    // MARK: Events

    mutating func start(_ context: inout FetchContext) -> FetchStep {
        guard case .ready = state else { return unexpected(&context) }
        return enterHop(from: nil, &context, events: [])
    }

    /// A transfer gave a response.
    mutating func received(
        _ response: TransferResponse, _ context: inout FetchContext
    ) -> FetchStep {
        guard case .transferring(let since) = state else { return unexpected(&context) }
        time.noteNetwork(context.now - since)
        bodyState = response.requestBody
        var step = judged(response, &context)
        if plan.reportsExchanges { step.events.insert(.answered(ResponseSummary(response)), at: 0) }
        return step
    }

    /// A challenge of the proxy or the server, or a response that is none.
    private mutating func judged(
        _ response: TransferResponse, _ context: inout FetchContext
    ) -> FetchStep {
        if response.isFromProxy, let route, response.status == 407 {
            let fields = response.headers.values(of: "Proxy-Authenticate")
            guard fields.isEmpty else {
                return challenged(by: .proxy(route.endpoint), .proxy, fields, response, &context)
            }
        }
        noteConnection(response, &context)
        if let failure = noteProxyAcceptance(response, &context) { return fail(failure, &context) }
        let fields = response.headers.values(of: "WWW-Authenticate")
        if response.status == 401, !fields.isEmpty {
            return challenged(by: server, .server, fields, response, &context)
        }
        return settle(response, &context)
    }

    /// A server or a proxy wants to know who asks.
    private mutating func challenged(
        by challenger: Challenger, _ side: Side, _ fields: [String], _ response: TransferResponse,
        _ context: inout FetchContext
    ) -> FetchStep {
        let (challenges, malformed) = ChallengeHeader.read(fields)
        let offers = OfferList(
            challenges, malformed: malformed, by: challenger, allowed: plan.methods,
            keepsConnection: keepsConnection(side, response), isReadable: isReadable(challenger),
            context.environment.schemes)
        return challenged(Question(.login(offers, side), .response(response)), offers, side, &context)
    }

    mutating func challenged(
        _ question: Question, _ offers: OfferList, _ side: Side, _ context: inout FetchContext
    ) -> FetchStep {
        rounds += 1
        guard rounds <= Limits.authenticationRounds else { return tooManyAttempts(offers.challenger, &context) }
        // Nobody waits for a verdict of the server while somebody is asked about the proxy.
        if side == .proxy, let attempt = outgoing.server { context.turns.endTrial(by: id, in: attempt.space) }
        guard let attempt = outgoing[side] else { return choose(question, &context) }
        outgoing[side] = nil
        if let retry = attempt.retry(offers) {
            outgoing[side] = retry
            return transfer(&context)
        }
        if let next = attempt.continuation(offers) {
            context.turns.endTrial(by: id, in: attempt.space)
            return goOn(next, after: attempt, question, &context)
        }
        if let wanted = attempt.named(by: offers).tooNarrow(offers) {
            noteTooNarrow(attempt, for: wanted, &context)
            return choose(question, &context)
        }
        note(attempt, refusedWith: offers, &context)
        return choose(question, &context)
    }

    /// A transfer gave none.
    mutating func failed(
        _ failure: TransferFailure, _ context: inout FetchContext
    ) -> FetchStep {
        guard case .transferring(let since) = state else { return unexpected(&context) }
        time.noteNetwork(context.now - since)
        bodyState = failure.requestBody
        noteTunnel(failure, &context)
        context.turns.endTrial(by: id)
        if failure.kind == .requestBodyGone, case .stream? = hop.body { return sendAgain(&context) }
        return question(about: failure, &context) ?? fail(FetchFailure(failure), &context)
    }

    /// The answer to the last `ask`.
    mutating func answered(
        _ answer: ChallengeAnswer, _ context: inout FetchContext
    ) -> FetchStep {
        guard case .asking(var question, let respondent) = state else { return unexpected(&context) }
        time.endQueue(context.now)
        if answer != .useDefault { question.declined.noteAnswer() }
        switch (answer, question.kind) {
        case (.cancel, _):
            release(.cancelled(by: respondent), answeredBy: respondent, slot(of: question), &context)
            return fail(.challengeCancelled(at: challenger(of: question)), &context)
        case (.useDefault, _):
            question.declined.noteDefault(of: respondent)
            return choose(question, &context)
        case (_, .serverTrust(let facts)):
            return answered(answer, by: respondent, about: facts, question, &context)
        case (_, .clientCertificate):
            return answeredAboutCertificate(answer, by: respondent, question, &context)
        case (_, .login(let offers, let side)):
            return answered(answer, by: respondent, offers, side, question, &context)
        }
    }

    /// The answer to the last `consult`; `nil` when there is none.
    mutating func consulted(
        _ answer: Bool?, _ context: inout FetchContext
    ) -> FetchStep {
        guard case .consulting(let consultation, let suspended) = state else { return unexpected(&context) }
        switch (consultation, answer) {
        case (.approveRedirect, _): break
        case (_, nil): noteSilence(about: consultation)
        case (.canAuthenticate(let space), let answer?):
            targets[Challenger(space), default: TargetRecord()].canAuthenticate[space] = answer
        case (.useStorage, let answer?): storageAnswer = answer
        }
        switch suspended {
        case .hop(let events): return startHop(&context, events: events)
        case .question(let question): return choose(question, &context)
        case .redirect(let response, let next):
            return answer == true
                ? follow(next, after: response, &context) : finish(response, &context)
        }
    }

    /// What the keyring gave to the last `lookUp`; `nil` where it could not be used.
    mutating func found(
        _ result: [KeyringItem]?, _ context: inout FetchContext
    ) -> FetchStep {
        guard case .lookingUp(let question, let since) = state else { return unexpected(&context) }
        time.noteWait(context.now - since)
        let items = result ?? []
        targets[challenger(of: question), default: TargetRecord()].keyringItems?.note(result)
        context.keyring.notePaths(
            of: items, at: challenger(of: question), time: context.environment.sinceEpoch, now: context.now)
        return choose(question, &context)
    }

    /// News for a fetch that waits.
    mutating func resumed(
        _ wake: SpaceTurns.Wake, _ context: inout FetchContext
    ) -> FetchStep {
        guard case .waiting(let paused, let place, let since) = state else { return unexpected(&context) }
        time.noteWait(context.now - since)
        guard case .question(var question) = paused else {
            let isUnasked = paused.side.flatMap { outgoing[$0] }?.isUnasked ?? false
            let isProven = wake.news == .proven || wake.news == .taken && isUnasked
            return resumedRequest(isProven: isProven, paused, &context)
        }
        if case .line(let key) = place, wake.news == .turn { heldTurns[TurnSlot(key.space)] = key }
        question.declined.formUnion(wake.declined)
        switch wake.news {
        case .proven:
            question.deferred?.provenAt = context.now
            return choose(question, &context)
        case .turn, .lookAgain, .taken:
            return choose(question, &context)
        case .accepted(let found, let isShared):
            if isForHandler(question), isAsked(about: found, question) { return choose(question, &context) }
            question.mark = nil
            return follow(found, isShared: isShared, question, &context)
        case .proceed where isForHandler(question), .cancelled where isForHandler(question),
            .rejected where isForHandler(question):
            return choose(question, &context)
        case .proceed:
            question.declined.noteAnswer()
            return proceed(question, &context)
        case .cancelled(let isOwn) where !isOwn && !isForAgents(question),
            .rejected(let isOwn) where !isOwn && !isForAgents(question):
            return choose(question, &context)
        case .cancelled:
            return fail(.challengeCancelled(at: challenger(of: question)), &context)
        case .rejected:
            if case .serverTrust(let facts) = question.kind { return distrust(question, facts, &context) }
            guard case .login = question.kind else { return proceed(question, &context) }
            noteRejection(of: question)
            question.declined.noteRejection()
            return choose(question, &context)
        }
    }

    /// Time has passed. `nil` unless that ends the fetch.
    mutating func tick(_ context: inout FetchContext) -> FetchStep? {
        if case .transferring(let since) = state, context.now - since >= Limits.verdictWait {
            // A download that takes its time, or a server that hangs, is no reason to keep the others from theirs.
            context.turns.endTrial(by: id)
            releaseAll(&context)
            return nil
        }
        return endWait(&context)
    }

    /// Something outside ended the fetch: its client is gone or has cancelled it, or its answer was not understood.
    mutating func abort(_ failure: FetchFailure, _ context: inout FetchContext) -> FetchStep {
        if case .finished = state { return unexpected(&context) }
        return fail(failure, &context)
    }

    // MARK: What a question is about

    /// Whether everybody on the way can read what is sent there. Behind a proxy "localhost" is not this machine.
    func isReadable(_ challenger: Challenger) -> Bool {
        guard challenger.scheme != "https" else { return false }
        return !Loopback.isLoopback(challenger.host) || !challenger.isProxy && route != nil
    }

    /// Whether a login of the connection is one to this challenger. A connection has no more than one.
    private func keepsConnection(_ side: Side, _ response: TransferResponse) -> Bool {
        if let other = outgoing.handshake, other.side != side { return false }
        return side == .proxy || reachesServer(response)
    }

    /// Whether the connection leads to the server itself; through a proxy that forwards requests it does only where the proxy
    /// says so.
    private func reachesServer(_ response: TransferResponse) -> Bool {
        guard let route, route.endpoint.type != .socks, hop.url.origin.scheme == .http else { return true }
        return response.headers.values(of: "Proxy-Support").contains {
            $0.equalsIgnoringASCIICase("Session-Based-Authentication")
        }
    }

    func challenger(of paused: Paused) -> Challenger {
        switch paused {
        case .question(let question): challenger(of: question)
        case .request(let side): outgoing[side]?.challenger ?? server
        }
    }

    func challenger(of question: Question) -> Challenger {
        if case .login(let offers, _) = question.kind { offers.challenger } else { server }
    }

    /// `nil` for a response of which no scheme is left.
    func space(of question: Question) -> ProtectionSpace? {
        switch question.kind {
        case .login(let offers, _): question.asked?.protectionSpace(at: offers.challenger)
        case .serverTrust: server.space(realm: nil, .serverTrust)
        case .clientCertificate: server.space(realm: nil, .clientCertificate)
        }
    }

    func slot(of question: Question) -> TurnSlot {
        switch question.kind {
        case .login(_, .server): .server
        case .login(_, .proxy): .proxy
        case .serverTrust, .clientCertificate: .connection
        }
    }

    /// Rule 14.
    mutating func noteRejection(of question: Question) {
        guard case .login(let offers, _) = question.kind, let asked = question.asked else { return }
        let space = asked.protectionSpace(at: offers.challenger)
        targets[offers.challenger, default: TargetRecord()].noteRejection(of: asked, in: space)
    }

    /// An event that no action waits for: a mistake in the code that runs this machine, and never a reason to send something.
    mutating func unexpected(_ context: inout FetchContext) -> FetchStep {
        let text = "The fetch got an event that it did not wait for. Please report this."
        return fail(FetchFailure(.internalError, text), &context)
    }
}

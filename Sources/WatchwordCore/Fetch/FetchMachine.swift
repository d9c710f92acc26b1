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
    /// - `finished`: nothing follows.
    enum State: Sendable {
        case ready
        case transferring(Attempt?, since: Duration)
        case consulting(Consultation, then: Suspended)
        case waiting(Question, at: SpaceTurns.WaitingPlace, since: Duration)
        case lookingUp(Question)
        case asking(Question, Respondent)
        case finished
    }

    /// What a consultation has interrupted.
    enum Suspended: Sendable {
        case hop([FetchEvent])
        case question(Question)
    }

    let id: FetchID
    let client: ClientTag
    /// The only client that may use what this fetch leaves in the session, and that it may use itself; `nil` for all.
    let owner: ClientTag?
    let plan: FetchPlan
    var hop: HopRequest
    var state = State.ready
    /// The line in which it is this fetch's turn.
    var heldTurn: SpaceTurns.Key?
    /// What the client said to `useStorage`; `nil` before it was asked.
    var storageAnswer: Bool?
    /// The last refusal of another fetch before this one: what comes later is news to it.
    let lastRefusalBefore: Int
    private var targets: [Origin: TargetRecord] = [:]
    private var networkTime = Duration.zero
    private var exchanges = 0
    var rounds = 0
    private var redirects = 0
    private var hasAuthenticated = false
    /// What the last request said in Digest.
    private var digestExchange: DigestExchange?

    init(_ plan: FetchPlan, id: FetchID, client: ClientTag, owner: ClientTag?, lastRefusal: Int) {
        self.lastRefusalBefore = lastRefusal
        self.plan = plan
        self.id = id
        self.client = client
        self.owner = owner
        self.hop = HopRequest(url: plan.url, method: plan.method, headers: plan.headers, body: plan.body)
    }

    /// Failed attempts and so on at the origin of the present hop.
    var target: TargetRecord {
        get { targets[hop.url.origin] ?? TargetRecord() }
        set { targets[hop.url.origin] = newValue }
    }

    // MARK: Events

    mutating func start(_ environment: FetchEnvironment, _ memory: inout CredentialMemory) -> FetchStep {
        guard case .ready = state else { return unexpected(&memory) }
        return startHop(environment, &memory, events: [])
    }

    /// A transfer gave a response.
    mutating func received(
        _ response: TransferResponse, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard case .transferring(let attempt, let since) = state else { return unexpected(&memory) }
        networkTime += environment.now - since
        let fields = response.headers.values(of: "WWW-Authenticate")
        guard response.status == 401, !fields.isEmpty else {
            return settle(response, attempt, environment, &memory)
        }
        rounds += 1
        guard rounds <= Limits.authenticationRounds else { return tooManyAttempts(&memory) }
        let offers = OfferList(ChallengeHeader.parse(fields: fields), allowed: plan.methods)
        if let attempt {
            if let retry = attempt.retry(offers) { return transfer(retry, environment, &memory) }
            memory.turns.endTrial(by: id)
            note(attempt, refusedWith: offers, environment.now, &memory)
        }
        return choose(Question(offers: offers, response: response), environment, &memory)
    }

    /// A transfer gave none.
    mutating func failed(_ failure: TransferFailure, _ memory: inout CredentialMemory) -> FetchStep {
        guard case .transferring = state else { return unexpected(&memory) }
        return fail(FetchFailure(failure), &memory)
    }

    /// The answer to the last `ask`. A deadline that passed counts as `useDefault`.
    mutating func answered(
        _ answer: ChallengeAnswer, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard case .asking(var question, let respondent) = state, let asked = question.asked else {
            return unexpected(&memory)
        }
        switch answer {
        case .credential(.password(let credential)):
            return use(credential, of: respondent, for: asked, question, environment, &memory)
        case .credential(.proposed):
            return useProposed(for: asked, question, respondent, environment, &memory)
        case .proceed:
            release(.proceed, &memory)
            return finish(question.response, nil, &memory)
        case .cancel:
            release(.cancelled, &memory)
            return fail(.challengeCancelled(at: hop.url.origin), &memory)
        case .useDefault:
            question.declined.insert(respondent)
            return choose(question, environment, &memory)
        case .reject:
            target.noteRejection(of: asked.protectionSpace(at: hop.url.origin))
            release(.rejected, &memory)
            question.declined = []
            return choose(question, environment, &memory)
        }
    }

    /// The answer to the last `consult`.
    mutating func consulted(
        _ answer: Bool, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard case .consulting(let consultation, let suspended) = state else { return unexpected(&memory) }
        switch consultation {
        case .canAuthenticate(let space): target.canAuthenticate[space] = answer
        case .useStorage: storageAnswer = answer
        }
        switch suspended {
        case .hop(let events): return startHop(environment, &memory, events: events)
        case .question(let question): return choose(question, environment, &memory)
        }
    }

    /// What the keyring gave to the last `lookUp`: nothing where it could not be used.
    mutating func found(
        _ items: [KeyringItem], _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard case .lookingUp(let question) = state else { return unexpected(&memory) }
        target.keyringItems = items
        return choose(question, environment, &memory)
    }

    /// News for a fetch that waits.
    mutating func resumed(
        _ wake: SpaceTurns.Wake, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard case .waiting(var question, let place, let since) = state, let asked = question.asked else {
            return unexpected(&memory)
        }
        question.waited += environment.now - since
        if case .line(let key) = place, wake.news == .turn { heldTurn = key }
        question.declined.formUnion(wake.declined)
        switch wake.news {
        case .turn, .lookAgain:
            return choose(question, environment, &memory)
        case .accepted(let credential, let source):
            return follow(credential, source, question, environment, &memory)
        case .proceed:
            return finish(question.response, nil, &memory)
        case .cancelled:
            return fail(.challengeCancelled(at: hop.url.origin), &memory)
        case .rejected:
            target.noteRejection(of: asked.protectionSpace(at: hop.url.origin))
            question.declined = []
            return choose(question, environment, &memory)
        }
    }

    /// Time has passed. `nil` unless that ends the fetch.
    mutating func tick(_ environment: FetchEnvironment, _ memory: inout CredentialMemory) -> FetchStep? {
        if case .transferring(_?, let since) = state, environment.now - since >= Limits.verdictWait {
            // A download that takes its time, or a server that hangs, is no reason to keep the others from theirs.
            memory.turns.endTrial(by: id)
            release(.passed(declined: []), &memory)
            return nil
        }
        guard case .waiting(let question, _, let since) = state,
            question.waited + environment.now - since >= Limits.turnWait
        else { return nil }
        return fail(
            FetchFailure(
                .challengeTimedOut,
                "\(hop.url.origin.text) asks for a log-in, and the question about it, which another fetch has put, was not settled in \(Limits.turnWait)."
            ), &memory)
    }

    /// Something outside ended the fetch: its client is gone or has cancelled it, or its answer was not understood.
    mutating func abort(_ failure: FetchFailure, _ memory: inout CredentialMemory) -> FetchStep {
        if case .finished = state { return unexpected(&memory) }
        return fail(failure, &memory)
    }

    // MARK: Hops

    private mutating func startHop(
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory, events: [FetchEvent]
    ) -> FetchStep {
        var attempt: Attempt?
        if let entry = preemptiveEntry(memory, environment.now) {
            if let consultation = nextConsultation(for: entry.space, memory) {
                return consult(consultation, then: .hop(events))
            }
            if mayUseStorage(memory) { attempt = preemptiveAttempt(entry) }
        }
        var step = transfer(attempt, environment, &memory)
        step.events.insert(contentsOf: events, at: 0)
        return step
    }

    /// A response that does not challenge: accepts the attempt, redirects, or is the result.
    private mutating func settle(
        _ response: TransferResponse, _ attempt: Attempt?, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep {
        memory.turns.endTrial(by: id)
        var accepted = attempt.flatMap { response.showsAcceptance ? $0 : nil }
        if let attempt, let exchange = digestExchange {
            let info = AuthenticationInfo(fields: response.headers.values(of: "Authentication-Info"))
            guard exchange.isProven(by: info, for: attempt.credential, body: response.body) else {
                return fail(.serverNotAuthentic(hop.url.origin), &memory)
            }
            accepted?.follow(exchange, info, at: hop.url.origin, nonces: &memory.session.nonces)
        }
        if let accepted {
            hasAuthenticated = true
            memory.session.nonces.accepted.note(accepted.challenge, at: hop.url.origin)
            remember(accepted, environment.now, &memory)
            release(.accepted(accepted.credential, accepted.source), &memory)
        }
        guard plan.maxRedirects > 0 else { return finish(response, accepted, &memory) }
        do throws(FetchFailure) {
            let next = try RedirectPolicy.next(after: hop, response: response, hasAuthenticated: hasAuthenticated)
            guard let next else { return finish(response, accepted, &memory) }
            release(.passed(declined: []), &memory)
            redirects += 1
            guard redirects <= plan.maxRedirects else { return tooManyRedirects(&memory) }
            try environment.hosts.check(next.url.origin)
            let event = FetchEvent.redirected(status: response.status, from: hop.url.text, to: next.url.text)
            hop = next
            return startHop(environment, &memory, events: [event])
        } catch {
            return fail(error, &memory)
        }
    }

    // MARK: Transitions

    mutating func transfer(
        _ attempt: Attempt?, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        let timeout = plan.timeout - networkTime
        guard timeout > .zero else {
            let text = "\(hop.url.origin.text) took longer than \(plan.timeout) in all."
            return fail(FetchFailure(.timedOut, text), &memory)
        }
        state = .transferring(attempt, since: environment.now)
        exchanges += 1
        digestExchange = nil
        let authorization = attempt?.authorization(
            for: hop, environment, nonces: &memory.session.nonces, exchange: &digestExchange)
        return FetchStep(
            .transfer(
                TransferRequest(
                    url: hop.url, method: hop.method, headers: hop.headers, authorization: authorization,
                    body: hop.body, proxy: environment.proxy.url(for: hop.url.origin), timeout: timeout,
                    maxBodyBytes: plan.maxBodyBytes)))
    }

    mutating func consult(_ consultation: Consultation, then suspended: Suspended) -> FetchStep {
        state = .consulting(consultation, then: suspended)
        return FetchStep(.consult(consultation))
    }

    mutating func finish(
        _ response: TransferResponse, _ accepted: Attempt?, _ memory: inout CredentialMemory
    ) -> FetchStep {
        leave(&memory)
        state = .finished
        let result = FetchResponse(
            response: response, url: hop.url, authentication: accepted?.authentication, exchanges: exchanges)
        return FetchStep(
            .finish(result), events: [.responded(status: response.status, headers: response.headers)])
    }

    mutating func fail(_ failure: FetchFailure, _ memory: inout CredentialMemory) -> FetchStep {
        leave(&memory)
        state = .finished
        return FetchStep(.fail(failure))
    }

    mutating func tooManyAttempts(_ memory: inout CredentialMemory) -> FetchStep {
        let text =
            "\(hop.url.origin.text) still asks for a log-in after \(Limits.authenticationRounds) rounds. The fetch has ended."
        return fail(FetchFailure(.tooManyAttempts, text), &memory)
    }

    private mutating func tooManyRedirects(_ memory: inout CredentialMemory) -> FetchStep {
        let text =
            "More than \(plan.maxRedirects) redirects, the last at \(hop.url.text.shortened). Allow more with maxRedirects."
        return fail(FetchFailure(.tooManyRedirects, text), &memory)
    }

    /// An event that no action waits for: a mistake in the code that runs this machine, and never a reason to send something.
    private mutating func unexpected(_ memory: inout CredentialMemory) -> FetchStep {
        let text = "The fetch got an event that it did not wait for. Please report this."
        return fail(FetchFailure(.internalError, text), &memory)
    }
}

extension FetchFailure {
    static func challengeCancelled(at origin: Origin) -> FetchFailure {
        FetchFailure(.challengeCancelled, "The log-in at \(origin.text) was cancelled. Nothing was fetched.")
    }
}

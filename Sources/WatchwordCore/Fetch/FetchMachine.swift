public import WatchwordProtocol

/// Decides, step by step, what one fetch does: which request goes out, with which credential, who is asked, when it ends.
///
/// It makes no request, asks nobody and knows no clock: each event returns the next action, and every action but the last
/// two is answered by exactly one event.
public struct FetchMachine: Sendable {
    /// - `ready` → `transferring`
    /// - `transferring` → `transferring` (another attempt, or a redirect), `asking`, `finished`
    /// - `asking` → `transferring`, `asking` (the answer cannot be used, or a scheme was rejected), `finished`
    /// - `finished`: nothing follows.
    private enum State: Sendable {
        case ready
        case transferring(Attempt?, since: Duration)
        case asking(Question)
        case finished
    }

    let plan: FetchPlan
    private(set) var hop: HopRequest
    private var state = State.ready
    private var targets: [Origin: TargetRecord] = [:]
    private var networkTime = Duration.zero
    private var exchanges = 0
    private var rounds = 0
    private var redirects = 0
    private var hasAuthenticated = false

    public init(_ plan: FetchPlan) {
        self.plan = plan
        self.hop = HopRequest(url: plan.url, method: plan.method, headers: plan.headers, body: plan.body)
    }

    /// What is being fetched now: it changes with redirects.
    public var url: FetchURL { hop.url }

    /// Failed attempts and so on at the origin of the present hop.
    var target: TargetRecord {
        get { targets[hop.url.origin] ?? TargetRecord() }
        set { targets[hop.url.origin] = newValue }
    }

    // MARK: Events

    public mutating func start(_ environment: FetchEnvironment, session: inout SessionCache) -> FetchStep {
        guard case .ready = state else { return unexpected() }
        return startHop(environment, session: &session, events: [])
    }

    /// A transfer gave a response.
    public mutating func received(
        _ response: TransferResponse, _ environment: FetchEnvironment, session: inout SessionCache
    ) -> FetchStep {
        guard case .transferring(let attempt, let since) = state else { return unexpected() }
        networkTime += environment.now - since
        let fields = response.headers.values(of: "WWW-Authenticate")
        guard response.status == 401, !fields.isEmpty else {
            return settle(response, attempt, environment, session: &session)
        }
        rounds += 1
        guard rounds <= Limits.authenticationRounds else { return tooManyAttempts() }
        let offers = OfferList(ChallengeHeader.parse(fields: fields), allowed: plan.methods)
        if let attempt {
            if let retry = attempt.retry(offers) {
                return transfer(retry, environment, session: &session)
            }
            note(attempt, refusedWith: offers, session: &session)
        }
        return choose(Question(offers: offers, response: response), environment, session: &session)
    }

    /// A transfer gave none.
    public mutating func failed(_ failure: TransferFailure) -> FetchStep {
        guard case .transferring = state else { return unexpected() }
        return fail(FetchFailure(failure))
    }

    /// The answer to the last `ask`. A deadline that passed counts as `useDefault`.
    public mutating func answered(
        _ answer: ChallengeAnswer, _ environment: FetchEnvironment, session: inout SessionCache
    ) -> FetchStep {
        guard case .asking(let question) = state, let asked = question.asked else { return unexpected() }
        switch answer {
        case .credential(.password(let credential)):
            return use(credential, for: asked, of: question, environment, session: &session)
        case .credential(.proposed):
            guard let proposed = target.lastRefused, proposed.space == asked.protectionSpace(at: hop.url.origin) else {
                return ask(question, problem: .nothingProposed)
            }
            return use(proposed.credential, for: asked, of: question, environment, session: &session)
        case .proceed:
            return finish(question.response, nil)
        case .cancel:
            return fail(
                FetchFailure(
                    .challengeCancelled, "The log-in at \(hop.url.origin.text) was cancelled. Nothing was fetched."))
        case .useDefault:
            guard let stored = candidate(for: asked, session: session, now: environment.now) else {
                return finish(question.response, nil)
            }
            return transfer(stored, environment, session: &session)
        case .reject:
            target.noteRejection(of: asked.protectionSpace(at: hop.url.origin))
            return choose(question, environment, session: &session)
        }
    }

    /// Something outside ended the fetch: its client is gone or has cancelled it, or its answer was not understood.
    public mutating func abort(_ failure: FetchFailure) -> FetchStep {
        if case .finished = state { return unexpected() }
        return fail(failure)
    }

    // MARK: Decisions

    private mutating func startHop(
        _ environment: FetchEnvironment, session: inout SessionCache, events: [FetchStep.Event]
    ) -> FetchStep {
        let attempt = preemptiveAttempt(session: session, now: environment.now)
        var step = transfer(attempt, environment, session: &session)
        step.events.insert(contentsOf: events, at: 0)
        return step
    }

    /// A response that does not challenge: accepts the attempt, redirects, or is the result.
    private mutating func settle(
        _ response: TransferResponse, _ attempt: Attempt?, _ environment: FetchEnvironment, session: inout SessionCache
    ) -> FetchStep {
        let accepted = attempt.flatMap { response.showsAcceptance ? $0 : nil }
        if let accepted {
            hasAuthenticated = true
            remember(accepted, environment.now, session: &session)
        }
        guard plan.maxRedirects > 0 else { return finish(response, accepted) }
        do throws(FetchFailure) {
            let next = try RedirectPolicy.next(after: hop, response: response, hasAuthenticated: hasAuthenticated)
            guard let next else { return finish(response, accepted) }
            redirects += 1
            guard redirects <= plan.maxRedirects else { return tooManyRedirects() }
            let event = FetchStep.Event.redirected(status: response.status, from: hop.url.text, to: next.url.text)
            hop = next
            return startHop(environment, session: &session, events: [event])
        } catch {
            return fail(error)
        }
    }

    /// The strongest scheme that was not rejected: with a credential at hand, else by asking, else not at all.
    private mutating func choose(
        _ question: Question, _ environment: FetchEnvironment, session: inout SessionCache
    ) -> FetchStep {
        let origin = hop.url.origin
        let open = question.offers.answerable.first { !target.hasRejected($0.protectionSpace(at: origin)) }
        guard let open else { return finish(question.response, nil) }
        if let stored = candidate(for: open, session: session, now: environment.now) {
            return transfer(stored, environment, session: &session)
        }
        guard plan.canAsk else { return finish(question.response, nil) }
        var question = question
        question.asked = open
        return ask(question, problem: nil)
    }

    /// One attempt with what the client answered, unless it is known to be of no use.
    private mutating func use(
        _ credential: PasswordCredential, for asked: AnswerableChallenge, of question: Question,
        _ environment: FetchEnvironment, session: inout SessionCache
    ) -> FetchStep {
        let space = asked.protectionSpace(at: hop.url.origin)
        guard asked.canCarry(credential) else { return ask(question, problem: .credentialNotUsable) }
        guard !target.hasRefused(credential, in: space) else {
            target.noteRepeatedAnswer()
            return ask(question, problem: .credentialAlreadyRefused)
        }
        let attempt = Attempt(challenge: asked, space: space, credential: credential, source: .client)
        return transfer(attempt, environment, session: &session)
    }

    private mutating func note(_ attempt: Attempt, refusedWith offers: OfferList, session: inout SessionCache) {
        let spaces = offers.answerable.map { $0.protectionSpace(at: hop.url.origin) }
        // Sent on a guess by path into a part of the server that has another realm: nobody looked at the password.
        if attempt.isPreemptive && !spaces.contains(attempt.space) { return }
        target.noteRefusal(of: attempt)
        if plan.useStorage { session.forget(attempt.credential, for: attempt.space, at: hop.url.origin) }
    }

    private func remember(_ attempt: Attempt, _ now: Duration, session: inout SessionCache) {
        guard plan.useStorage, attempt.credential.persistence != .none, attempt.mayBeRemembered else { return }
        session.remember(
            attempt.credential, for: attempt.space, at: hop.url, digest: attempt.challenge.digest, now: now)
    }

    // MARK: Transitions

    private mutating func transfer(
        _ attempt: Attempt?, _ environment: FetchEnvironment, session: inout SessionCache
    ) -> FetchStep {
        let timeout = plan.timeout - networkTime
        guard timeout > .zero else {
            return fail(FetchFailure(.timedOut, "\(hop.url.origin.text) took longer than \(plan.timeout) in all."))
        }
        state = .transferring(attempt, since: environment.now)
        exchanges += 1
        return FetchStep(
            .transfer(
                TransferRequest(
                    url: hop.url, method: hop.method, headers: hop.headers,
                    authorization: attempt?.authorization(for: hop, environment, nonces: &session.nonces),
                    body: hop.body, timeout: timeout, maxBodyBytes: plan.maxBodyBytes)))
    }

    private mutating func ask(_ question: Question, problem: Challenge.AnswerProblem?) -> FetchStep {
        if problem != nil {
            rounds += 1
            guard rounds <= Limits.authenticationRounds else { return tooManyAttempts() }
        }
        guard let challenge = challenge(for: question, problem: problem) else { return finish(question.response, nil) }
        state = .asking(question)
        return FetchStep(.ask(challenge))
    }

    private mutating func finish(_ response: TransferResponse, _ accepted: Attempt?) -> FetchStep {
        state = .finished
        let result = FetchResponse(
            response: response, url: hop.url, authentication: accepted?.authentication, exchanges: exchanges)
        return FetchStep(
            .finish(result), events: [.responded(status: response.status, headers: response.headers)])
    }

    private mutating func fail(_ failure: FetchFailure) -> FetchStep {
        state = .finished
        return FetchStep(.fail(failure))
    }

    private mutating func tooManyAttempts() -> FetchStep {
        fail(
            FetchFailure(
                .tooManyAttempts,
                "\(hop.url.origin.text) still asks for a log-in after \(Limits.authenticationRounds) rounds. The fetch has ended."
            ))
    }

    private mutating func tooManyRedirects() -> FetchStep {
        fail(
            FetchFailure(
                .tooManyRedirects,
                "More than \(plan.maxRedirects) redirects, the last at \(hop.url.text.shortened). Allow more with maxRedirects."
            ))
    }

    /// An event that no action waits for: a mistake in the code that runs this machine, and never a reason to send something.
    private mutating func unexpected() -> FetchStep {
        fail(FetchFailure(.internalError, "The fetch got an event that it did not wait for. Please report this."))
    }
}

public import WatchwordProtocol

/// The running fetches and the state they share. Each event of a fetch returns the orders for it and for the fetches
/// that waited for it.
///
/// Performs no I/O: the caller makes the transfers, asks the clients and the keyring, and reports the outcomes.
public struct FetchTable: Sendable {
    /// An action for the caller.
    public enum Order: Sendable, Equatable {
        /// The next command of a fetch; see `FetchCommand`.
        case command(FetchCommand, for: FetchID)
        /// An action that no fetch waits for. `of` is the fetch that caused it; `nil` if none did.
        case effect(FetchEffect, of: FetchID?)

        public var fetch: FetchID? {
            switch self {
            case .command(_, let id): id
            case .effect(_, let id): id
            }
        }
    }

    /// Which clients may use an entry of the session.
    public enum Sharing: Sendable, Equatable {
        /// Every client.
        case user
        /// Only the client that supplied it.
        case client
        /// Every client, with the user's consent for each program.
        case ask
    }

    /// An event of one fetch.
    public enum Event: Sendable {
        case started
        /// A transfer has not ended yet.
        case transferReported(TransferEvent)
        case received(TransferResponse)
        /// A transfer ended without a response.
        case failed(TransferFailure)
        /// The answer to the last `ask`.
        case answered(ChallengeAnswer)
        /// A person has logged in, as the last `ask` proposed (`Challenge.login`).
        case loggedIn(LoginCredential)
        /// The respondent of the last `ask` has disconnected, timed out or failed.
        case unanswered
        /// The respondent of the last `ask` cannot be asked.
        case notAsked(Unanswered.NoRespondent)
        /// The answer to the last `consult`; `nil` if there is none.
        case consulted(Bool?)
        /// The answer to the last `confirm`; `nil` if there is none.
        case confirmed(Consent?)
        /// The result of the last `lookUp`, `readNetrc` or `obtainToken`.
        case found(Finding)
        /// The last `findUpstreams` has ended: the proxy rule of the environment knows the upstreams, or why there are none.
        case foundUpstreams
        /// The body that the client has sent again; `nil` if it has not.
        case supplied(RequestBody?)
        /// An update for a waiting fetch.
        case resumed(AuthenticationQueues.Wake)
        /// The time of `deadline` may have come.
        case timePassed
        /// The fetch was ended from outside: its client has disconnected, cancelled it or sent a malformed answer.
        case aborted(FetchFailure)
    }

    /// What a search outside the broker's memory has found.
    public enum Finding: Sendable {
        case items(Result<[KeyringItem], KeyringFailure>)
        /// The logins of the netrc file or of a command; empty if neither could be used.
        case logins([Netrc.Login], CredentialSource)
        case token(TokenOutcome)
    }

    private var machines: [FetchID: FetchMachine] = [:]
    var context: FetchContext
    var sharing: Sharing
    private var lastNumber = 0

    public init(
        session: SessionLimits = SessionLimits(), isKeyringEnabled: Bool = false, sharing: Sharing = .user
    ) {
        context = FetchContext(
            session: SessionCache(limits: session), keyring: KeyringRecord(isEnabled: isKeyringEnabled))
        self.sharing = sharing
    }

    /// The number of running fetches.
    public var count: Int { machines.count }

    /// The number of fetches that wait for another fetch.
    public var waitingCount: Int { context.queues.waitingCount }

    // MARK: Events of one fetch

    /// Adds a fetch, and returns its request, completed. The event `started` returns the first orders.
    /// - Parameters:
    ///   - program: the program of the client; `nil` if it has no other client.
    ///   - subject: the subject of the client; `nil` if it may use everything.
    public mutating func add(
        _ request: consuming FetchRequest, of client: ClientTag, program: ProgramTag? = nil, _ subject: Subject? = nil
    ) -> SharedFetchRequest {
        lastNumber += 1
        request.id = FetchID(number: lastNumber)
        request.client = AuthenticationQueues.Client(tag: client, program: program)
        request.access = Access(subject, client: client, sharing: sharing)
        request.refusalBaseline = context.refusals.lastNumber
        let shared = SharedFetchRequest(request)
        machines[shared.id] = FetchMachine(shared)
        return shared
    }

    /// Passes an event to the fetch.
    public mutating func handle(_ event: Event, of id: FetchID, _ environment: FetchEnvironment) -> [Order] {
        if case .found(.items(let result)) = event { recordKeyring(result, environment.now) }
        return run(id, environment, event)
    }

    /// Aborts these fetches together, so that none of them receives a lease that another one of them releases.
    public mutating func abort(
        _ ids: [FetchID], _ failure: FetchFailure, _ environment: FetchEnvironment
    ) -> [Order] {
        for id in ids { machines[id]?.leaveQueue(&context) }
        return ids.flatMap { id in run(id, environment, .aborted(failure)) }
    }

    /// Reports that the last `ask` or `confirm` is queued behind the questions of other fetches.
    public mutating func queued(_ id: FetchID, _ environment: FetchEnvironment) -> [Order] {
        machines[id]?.queued(now: environment.now)
        notifyWait(of: id)
        return context.outbox.takeOrders()
    }

    /// Reports that the queued `ask` or `confirm` has been delivered.
    public mutating func delivered(_ id: FetchID, _ environment: FetchEnvironment) {
        machines[id]?.delivered(now: environment.now)
    }

    /// Returns the failure of a fetch whose time is used up while its question is queued; `nil` otherwise.
    public func queueTimeout(of id: FetchID, _ environment: FetchEnvironment) -> FetchFailure? {
        machines[id]?.queueTimeout(now: environment.now)
    }

    /// Returns what a fetch waits for; `nil` if it does not wait for another fetch.
    public func wait(of id: FetchID) -> FetchWait? { machines[id]?.wait(context) }

    /// Returns the monotonic time at which the wait of a fetch reaches its limit, and `timePassed` is due. Returns `nil`
    /// if the fetch does not wait, or its wait has no limit.
    public func deadline(of id: FetchID) -> Duration? { machines[id]?.deadline(context) }

    // MARK: Events of all fetches

    /// Reports that the configuration now names another netrc file or other commands. Logins of the previous ones are
    /// not sent again.
    public mutating func netrcChanged() { context.forgets.recordNetrcChange() }

    /// Reports that time has passed: expired entries are forgotten, and waits that have reached their limit end.
    public mutating func tick(_ environment: FetchEnvironment) -> [Order] {
        recordTime(environment.sinceEpoch)
        context.session.expire(now: environment.now)
        context.decisions.expire(context.session.limits, now: environment.now)
        context.identities.expire(now: environment.now)
        context.queues.expire(now: environment.now)
        let expired = takeOrders()
        guard context.queues.waitingCount > 0 else { return expired }
        return expired
            + machines.keys.sorted { $0.number < $1.number }.flatMap { id in
                run(id, environment, .timePassed)
            }
    }

    /// Returns the orders for the effects collected so far.
    mutating func takeOrders(of cause: FetchID? = nil) -> [Order] {
        context.takeEffects().map { .effect($0, of: cause) }
    }

    private mutating func recordKeyring(_ result: Result<[KeyringItem], KeyringFailure>, _ now: Duration) {
        switch result {
        case .success(let items):
            if !items.isEmpty && items.allSatisfy(\.isLocked) {
                context.keyring.recordFailure(.everythingLocked, now: now)
            } else {
                context.keyring.recordUse()
            }
        case .failure(let failure):
            context.keyring.recordFailure(failure, now: now)
        }
    }

    // MARK: Waiting

    private mutating func notifyWait(of id: FetchID) {
        guard let wait = wait(of: id) else { return }
        context.notify(.waiting(wait), of: id)
    }

    /// Updates the wait reason (whether a person is being asked) of all fetches that wait for a lease of this one, and
    /// of the fetches that wait for those.
    private mutating func recordActivity(of id: FetchID, isAsking: Bool, _ now: Duration) {
        guard !context.queues.isEmpty, let place = machines.index(forKey: id) else { return }
        let held = machines.values[place].hop.leases.all
        if held.isEmpty { return }
        let isAsking = isAsking || wait(of: id)?.reason == .question
        for key in held {
            for waiter in context.queues.recordActivity(in: key, of: id, isAsking ? .question : .trial, now) {
                notifyWait(of: waiter)
                recordActivity(of: waiter, isAsking: false, now)
            }
        }
    }

    // MARK: Orders

    /// Changes the machine in place: copying it costs more than most events.
    private mutating func handle(_ event: Event, _ id: FetchID) -> FetchCommand? {
        guard let place = machines.index(forKey: id) else { return nil }
        return machines.values[place].handle(event, &context)
    }

    /// Returns the orders of one event, and of all that it causes in waiting fetches.
    private mutating func run(
        _ id: FetchID, _ environment: FetchEnvironment,
        _ event: Event
    ) -> [Order] {
        context.environment = environment
        if let command = handle(event, id) { add(command, of: id) }
        var effects = takeOrders(of: id)
        var wakes = context.queues.takeWakes()[...]
        while let wake = wakes.popFirst() {
            guard let next = handle(.resumed(wake), wake.fetch) else { continue }
            add(next, of: wake.fetch)
            effects += takeOrders(of: wake.fetch)
            wakes += context.queues.takeWakes()
        }
        for waiter in context.outbox.takePostponed() where machines[waiter]?.isWaiting == true {
            context.outbox.add(.command(.wait, for: waiter))
        }
        let orders = context.outbox.takeOrders()
        return effects.isEmpty ? orders : orders + effects
    }

    private mutating func add(_ command: FetchCommand, of id: FetchID) {
        if case .wait = command { notifyWait(of: id) }
        recordActivity(of: id, isAsking: command.asksPeople, context.now)
        switch command {
        case .finish, .fail: machines[id] = nil
        case .transfer, .ask, .confirm, .consult, .lookUp, .readNetrc, .obtainToken, .findUpstreams, .wait, .needBody:
            break
        }
        context.outbox.add(.command(command, for: id))
        if machines.isEmpty { context.refusals.forget() }
    }
}

extension KeyringFailure {
    static let everythingLocked = KeyringFailure(
        .locked, "the keyring items for this server are locked; run \"watchword keyring unlock\"")
}

public import WatchwordProtocol

/// All fetches that are running, and what they share: one event of one of them goes in, and out comes what is to be done
/// for it and for those that waited for it.
///
/// Without I/O: whoever runs it makes the transfers, asks the clients and the keyring, and reports what came of it.
public struct FetchTable: Sendable {
    /// What is to be done.
    public enum Order: Sendable, Equatable {
        /// The fetch waits for what comes of it, or has ended.
        case command(FetchCommand, for: FetchID)
        /// `of` is the fetch in which it came up; `nil` where it was in none.
        case effect(FetchEffect, of: FetchID?)
    }

    /// Who may use what is remembered for the session.
    public enum Sharing: Sendable, Equatable {
        /// Every client.
        case user
        /// Only the client that brought it.
        case client
        /// Every client, each program with the consent of the user.
        case ask
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

    /// How many fetches are running.
    public var count: Int { machines.count }

    /// How many of them wait for the question of another one.
    public var waitingCount: Int { context.turns.waitingCount }

    public func isRunning(_ id: FetchID) -> Bool { machines[id] != nil }

    // MARK: Events of one fetch

    /// Enters a fetch. Its first orders come from `start`.
    /// - Parameters:
    ///   - program: which the client is a connection of; `nil` for one that shares its program with no other client.
    ///   - subject: on whose behalf; `nil` for somebody who may use everything.
    public mutating func add(
        _ plan: FetchPlan, of client: ClientTag, program: ProgramTag? = nil, _ subject: Subject? = nil
    ) -> FetchID {
        lastNumber += 1
        let id = FetchID(number: lastNumber)
        machines[id] = FetchMachine(
            plan, id: id, client: SpaceTurns.Client(tag: client, program: program),
            access: Access(subject, client: client, sharing: sharing),
            lastRefusal: context.refusals.lastNumber)
        return id
    }

    public mutating func start(_ id: FetchID, _ environment: FetchEnvironment) -> [Order] {
        run(id, environment, .started)
    }

    public mutating func received(
        _ response: TransferResponse, for id: FetchID, _ environment: FetchEnvironment
    ) -> [Order] {
        run(id, environment, .received(response))
    }

    public mutating func failed(
        _ failure: TransferFailure, for id: FetchID, _ environment: FetchEnvironment
    ) -> [Order] {
        run(id, environment, .failed(failure))
    }

    public mutating func answered(
        _ answer: ChallengeAnswer, for id: FetchID, _ environment: FetchEnvironment
    ) -> [Order] {
        run(id, environment, .answered(answer))
    }

    /// Nobody answers: whoever was asked is gone, is out of time, or has failed.
    public mutating func unanswered(_ id: FetchID, _ environment: FetchEnvironment) -> [Order] {
        run(id, environment, .unanswered)
    }

    /// Whom the last `ask` is for cannot be asked.
    public mutating func notAsked(
        _ id: FetchID, because cause: Unanswered.NoRespondent, _ environment: FetchEnvironment
    ) -> [Order] {
        run(id, environment, .notAsked(cause))
    }

    /// - Parameter answer: `nil` where nobody answers.
    public mutating func consulted(
        _ answer: Bool?, for id: FetchID, _ environment: FetchEnvironment
    ) -> [Order] {
        run(id, environment, .consulted(answer))
    }

    /// What somebody has said to the use of what is kept; `nil` when nobody was there.
    public mutating func confirmed(
        _ consent: Consent?, for id: FetchID, _ environment: FetchEnvironment
    ) -> [Order] {
        run(id, environment, .confirmed(consent))
    }

    /// The configuration names another netrc file, or none: what was found in the one before is not sent any more.
    public mutating func netrcChanged() { context.forgets.noteNetrcChange() }

    /// What the keyring gave; the reason where it gave nothing for one.
    public mutating func found(
        _ result: Result<[KeyringItem], KeyringFailure>, for id: FetchID, _ environment: FetchEnvironment
    ) -> [Order] {
        noteKeyring(result, environment.now)
        return run(id, environment, .found(try? result.get()))
    }

    /// What the netrc file has: nothing where it could not be used.
    public mutating func foundInNetrc(
        _ logins: [Netrc.Login], for id: FetchID, _ environment: FetchEnvironment
    ) -> [Order] {
        run(id, environment, .foundInNetrc(logins))
    }

    /// The client has given the request's body again; `nil` when it has not.
    public mutating func given(
        _ body: RequestBody?, for id: FetchID, _ environment: FetchEnvironment
    ) -> [Order] {
        run(id, environment, .given(body))
    }

    /// Ends these together: none of them gets the lease that another one of them gives back.
    public mutating func abort(
        _ ids: [FetchID], _ failure: FetchFailure, _ environment: FetchEnvironment
    ) -> [Order] {
        for id in ids { machines[id]?.leaveQueue(&context) }
        return ids.flatMap { id in run(id, environment, .aborted(failure)) }
    }

    /// The last `ask` or `confirm` is queued behind those of other fetches.
    public mutating func queued(_ id: FetchID, _ environment: FetchEnvironment) -> [Order] {
        machines[id]?.queued(now: environment.now)
        var orders: [Order] = []
        tellWait(of: id, to: &orders)
        return orders
    }

    /// It has been delivered.
    public mutating func delivered(_ id: FetchID, _ environment: FetchEnvironment) {
        machines[id]?.delivered(now: environment.now)
    }

    /// Why a fetch ends while its question is queued; `nil` where its time is not used up.
    public func queueTimeout(of id: FetchID, _ environment: FetchEnvironment) -> FetchFailure? {
        machines[id]?.queueTimeout(now: environment.now)
    }

    /// What a fetch waits for; `nil` where it does not wait for another one.
    public func wait(of id: FetchID) -> FetchWait? { machines[id]?.wait(context) }

    /// When a fetch that waits for another one has waited for long enough, and `expire` is due; `nil` where it does not wait.
    public func deadline(of id: FetchID) -> Duration? { machines[id]?.deadline(context) }

    /// What `deadline` says has come.
    public mutating func expire(_ id: FetchID, _ environment: FetchEnvironment) -> [Order] {
        run(id, environment, .timePassed)
    }

    // MARK: Events of all

    /// Time has passed: what is too old is forgotten, and who has waited too long waits no longer.
    public mutating func tick(_ environment: FetchEnvironment) -> [Order] {
        noteTime(environment.sinceEpoch)
        context.session.expire(now: environment.now)
        context.decisions.expire(context.session.limits, now: environment.now)
        context.identities.expire(now: environment.now)
        let expired = takeOrders()
        guard context.turns.waitingCount > 0 else { return expired }
        return expired
            + machines.keys.sorted { $0.number < $1.number }.flatMap { id in
                run(id, environment, .timePassed)
            }
    }

    /// What came up besides the fetches, such as a credential that was forgotten by hand.
    mutating func takeOrders(of cause: FetchID? = nil) -> [Order] {
        context.takeEffects().map { .effect($0, of: cause) }
    }

    private mutating func noteKeyring(_ result: Result<[KeyringItem], KeyringFailure>, _ now: Duration) {
        switch result {
        case .success(let items):
            if !items.isEmpty && items.allSatisfy(\.isLocked) {
                context.keyring.noteFailure(.everythingLocked, now: now)
            } else {
                context.keyring.noteUse()
            }
        case .failure(let failure):
            context.keyring.noteFailure(failure, now: now)
        }
    }

    // MARK: Waiting

    private func tellWait(of id: FetchID, to orders: inout [Order]) {
        guard let wait = wait(of: id) else { return }
        orders.append(.effect(.tell(.waiting(wait)), of: id))
    }

    /// Who waits for a turn of this fetch waits for a person, or does not any longer; and whoever waits for those, too.
    private mutating func noteActivity(of id: FetchID, isAsking: Bool, _ now: Duration, to orders: inout [Order]) {
        guard let place = machines.index(forKey: id) else { return }
        let held = machines.values[place].logins.search.situation.turns.all
        if held.isEmpty { return }
        let isAsking = isAsking || wait(of: id)?.reason == .question
        for key in held {
            for waiter in context.turns.noteActivity(in: key, of: id, isAsking ? .question : .trial, now) {
                tellWait(of: waiter, to: &orders)
                noteActivity(of: waiter, isAsking: false, now, to: &orders)
            }
        }
    }

    // MARK: Orders

    /// In place: to copy a machine costs more than most events.
    private mutating func handle(_ event: FetchMachine.Event, _ id: FetchID) -> FetchStep? {
        guard let place = machines.index(forKey: id) else { return nil }
        return machines.values[place].handle(event, &context)
    }

    /// The orders of one step, and those of all the steps that it leads to in fetches that waited.
    private mutating func run(
        _ id: FetchID, _ environment: FetchEnvironment,
        _ event: FetchMachine.Event
    ) -> [Order] {
        context.environment = environment
        var orders: [Order] = []
        if let step = handle(event, id) { append(step, of: id, environment.now, to: &orders) }
        var effects = takeOrders(of: id)
        var wakes = context.turns.takeWakes()[...]
        while let wake = wakes.popFirst() {
            guard let next = handle(.resumed(wake), wake.fetch) else { continue }
            append(next, of: wake.fetch, environment.now, to: &orders)
            effects += takeOrders(of: wake.fetch)
            wakes += context.turns.takeWakes()
        }
        // First, while everybody whom they are about is still there.
        let notes = context.outbox.takeNotes().map { Order.effect(.note($0), of: $0.fetch) }
        let verdicts = context.outbox.takeVerdicts().map { Order.effect(.judge($0), of: $0.fetch) }
        return notes + verdicts + orders + effects
    }

    private mutating func append(_ step: FetchStep, of id: FetchID, _ now: Duration, to orders: inout [Order]) {
        for event in step.events { orders.append(.effect(.tell(event), of: id)) }
        if step.command == .wait { tellWait(of: id, to: &orders) }
        noteActivity(of: id, isAsking: step.command.asksPeople, now, to: &orders)
        switch step.command {
        case .finish, .fail: machines[id] = nil
        case .transfer, .ask, .confirm, .consult, .lookUp, .readNetrc, .wait, .needBody: break
        }
        orders.append(.command(step.command, for: id))
        if machines.isEmpty { context.refusals.forget() }
    }
}

extension KeyringFailure {
    static let everythingLocked = KeyringFailure(
        .locked, "What the keyring holds for this server is locked. Unlock it with: watchword keyring unlock")
}

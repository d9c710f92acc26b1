internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Passes the orders of the fetch table to the desks, and the resulting events to the table. Owns the table, the
/// running fetches and the pending orders. All decisions are made by the table.
final class FetchRouter {
    /// The desks that carry out orders.
    struct OrderDesks {
        let session: SessionDesk
        let bodies: BodyDesk
        let questions: QuestionDesk
        let programPrompts: AskpassDesk
        let keyring: KeyringDesk
        let upstreams: UpstreamDesk
        /// Set once, because the desks refer to this router.
        var fronts: FrontDesk!
        var tokens: TokenDesk!
    }

    let ports: BrokerPorts
    let context: DeskContext
    let audit: AuditRecorder
    let clients: ClientRegistry
    let reference: DeskReference<FetchRouter>
    /// Set once, when all desks exist. The desks refer to this router, and exist as long as it does.
    var desks: OrderDesks!
    private(set) var table: FetchTable
    private var fetches: [FetchID: RunningFetch] = [:]
    /// The orders that are not yet carried out, with their fetches and, for those without a fetch, their causes. A fetch may end
    /// before its order is carried out.
    private var outbox: [(order: FetchTable.Order, fetch: RunningFetch?, cause: Cause)] = []
    private var isPerforming = false

    init(
        _ table: FetchTable, _ ports: BrokerPorts, _ context: DeskContext, _ audit: AuditRecorder,
        _ clients: ClientRegistry, _ reference: DeskReference<FetchRouter>
    ) {
        (self.table, self.ports, self.context) = (table, ports, context)
        (self.audit, self.clients, self.reference) = (audit, clients, reference)
    }

    subscript(id: FetchID) -> RunningFetch? { fetches[id] }

    var all: Dictionary<FetchID, RunningFetch>.Values { fetches.values }

    func add(_ fetch: RunningFetch) { fetches[fetch.id] = fetch }

    /// Removes a fetch, and returns whether it was running.
    func remove(_ fetch: RunningFetch) -> Bool {
        fetch.isRunning = false
        return fetches.removeValue(forKey: fetch.id) != nil
    }

    /// Passes an event of one fetch to the table, and carries out the resulting orders.
    func report(_ event: FetchTable.Event, of id: FetchID) { perform(table.handle(event, of: id, environment)) }

    /// Passes an event to the table, and carries out the resulting orders.
    /// - Parameter cause: the cause of orders that belong to no fetch.
    func report(_ cause: Cause = .broker, _ event: (inout FetchTable, FetchEnvironment) -> [FetchTable.Order]) {
        perform(event(&table, environment), cause)
    }

    /// Changes the table. Orders that result are returned, and the caller carries them out with `perform`.
    @discardableResult
    func change<Result>(_ change: (inout FetchTable) -> Result) -> Result { change(&table) }

    var environment: FetchEnvironment {
        FetchEnvironment(
            now: context.now, sinceEpoch: context.clock.sinceEpoch, proxy: desks.upstreams.rule,
            context.rules)
    }

    // MARK: Orders

    /// Carries out orders of the table, one after the other. Their results are reported to the table as events.
    /// - Parameter cause: the cause of orders that belong to no fetch.
    func perform(_ orders: [FetchTable.Order], _ cause: Cause = .broker) {
        for order in orders { outbox.append((order, order.fetch.flatMap { fetches[$0] }, cause)) }
        guard !isPerforming else { return }
        isPerforming = true
        var next = 0
        while next < outbox.count {
            let (order, fetch, cause) = outbox[next]
            next += 1
            switch order {
            case .command(let command, _): if let fetch, fetch.isRunning { perform(command, for: fetch) }
            case .effect(let effect, _): perform(effect, of: fetch, because: cause)
            }
        }
        outbox.removeAll(keepingCapacity: true)
        isPerforming = false
        desks.session.tickIfNeeded()
    }

    /// - Parameter origin: the cause if the effect belongs to no fetch.
    private func perform(_ effect: FetchEffect, of fetch: RunningFetch?, because origin: Cause) {
        var cause: Cause { fetch?.cause ?? origin }
        let running = fetch.flatMap { $0.isRunning ? $0 : nil }
        switch effect {
        case .notify(let event): if let running { notify(event, of: running) }
        case .audit(let record): if let running { audit.record(record, of: running) }
        case .report(let verdict): if let running { desks.questions.record(verdict, of: running) }
        case .store(let credential, let pattern): desks.keyring.storeAccepted(credential, for: pattern, cause)
        case .remove(let item, let credential): desks.keyring.discard(item, ifStill: credential, cause)
        case .announce(let change): clients.announce(change, cause)
        case .closeConnections(let identity): ports.transfers.forget(identity)
        case .storeTrust(let keys): ports.trust?.store(keys)
        case .storeConsents(let permanent): ports.consents?.store(permanent)
        }
    }

    private func perform(_ command: FetchCommand, for fetch: RunningFetch) {
        if fetch.tokenSearch != nil, !command.asksToLogIn { desks.tokens.leave(fetch) }
        switch command {
        case .transfer(let request): start(request, for: fetch)
        case .ask(let challenge, let respondent): desks.questions.ask(challenge, respondent, for: fetch)
        case .confirm(let request): desks.questions.confirm(request, for: fetch)
        case .consult(let consultation): desks.questions.consult(consultation, for: fetch)
        case .needBody: desks.questions.askForBody(of: fetch)
        case .wait: beginWait(of: fetch)
        case .lookUp(let queries):
            beginWait(of: fetch)
            desks.keyring.lookUp(queries, for: fetch)
        case .readNetrc(let query):
            beginWait(of: fetch)
            desks.keyring.readNetrc(query, for: fetch)
        case .obtainToken(let query): desks.tokens.obtain(query, for: fetch)
        case .findUpstreams(let origin): desks.upstreams.find(origin, for: fetch)
        case .finish(let response): complete(fetch, with: response)
        case .fail(let failure): complete(fetch, with: failure)
        }
    }

    // MARK: Transfers

    private func start(_ request: SharedRequest, for fetch: RunningFetch) {
        desks.bodies.dropOpenBody(of: fetch)
        let id = fetch.id
        let held = fetch.owner.flatMap { clients[$0.connection]?.quotas }
        let quotas = ResponseQuotas(memory: held?.responses, disk: held?.disk)
        let broker = reference.broker
        let report: TransferPort.Report = { event in
            broker.assumeIsolated { $0.desks.fetches.transferReported(event, of: id) }
        }
        let transfer = ports.transfers.start(request, quotas, report: report) { outcome in
            broker.assumeIsolated { $0.desks.fetches.transferEnded(outcome, of: id) }
        }
        (fetch.transfer, fetch.waitTimer) = (transfer, nil)
    }

    private func transferReported(_ event: TransferEvent, of id: FetchID) {
        guard let fetch = fetches[id] else { return }
        switch event {
        case .interim(let response):
            if let answer = fetch.answer { desks.fronts.received(interim: response, answer) }
        case .reusesConnection, .opensTunnel: self.report(.transferReported(event), of: id)
        }
    }

    /// Passes the outcome of a transfer to the table. If the fetch has ended meanwhile, cancels its open body.
    private func transferEnded(_ outcome: TransferPort.Outcome, of id: FetchID) {
        guard let fetch = fetches[id] else {
            if case .success(let response) = outcome, let body = response.openBody {
                ports.transfers.cancel(body.transfer)
            }
            return
        }
        fetch.transfer = nil
        switch outcome {
        case .success(let response):
            fetch.openBody = response.openBody
            report(.received(response), of: id)
        case .failure(let failure): report(.failed(failure), of: id)
        }
    }

    // MARK: Waiting

    /// Starts the deadline of a wait for another fetch or for a lookup.
    func beginWait(of fetch: RunningFetch) {
        let shortest = Duration.milliseconds(10)
        let id = fetch.id
        fetch.waitTimer = table.deadline(of: id).map { deadline in
            reference.after(max(shortest, deadline - context.now)) { $0.waitIsOver(id) }
        }
    }

    private func waitIsOver(_ id: FetchID) {
        report(.timePassed, of: id)
        // The table may have moved the deadline to a later time.
        if let fetch = fetches[id], fetch.waitTimer != nil, table.wait(of: id) != nil { beginWait(of: fetch) }
    }

    // MARK: Cancelling

    /// Withdraws the question and the transfer of a fetch, and ends it with `failure`, by default `cancelled` (-32800).
    func cancel(_ fetch: RunningFetch, _ failure: FetchFailure = FetchFailure(.cancelled, "the fetch was cancelled")) {
        cancel([fetch], failure)
    }

    /// Ends several fetches together, so that none of them continues the prompt or the attempt of another.
    func cancel(
        _ fetches: [RunningFetch], _ failure: FetchFailure = FetchFailure(.cancelled, "the fetch was cancelled")
    ) {
        for fetch in fetches {
            desks.questions.withdraw(of: fetch)
            if let transfer = fetch.transfer { ports.transfers.cancel(transfer) }
        }
        perform(table.abort(fetches.map(\.id), failure, environment))
    }
}

extension FetchCommand {
    /// Whether the fetch waits for a login in a browser next.
    fileprivate var asksToLogIn: Bool {
        if case .ask(let challenge, _) = self { challenge.login != nil } else { false }
    }
}

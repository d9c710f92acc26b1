internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Routes the commands of the fetch table to desks, and what comes of them back into the table. It owns the table, the running
/// fetches, and the orders that are not carried out yet. What is decided, is decided in the table.
final class FetchRouter {
    /// The desks that commands go to.
    struct Desks {
        let session: SessionKeeper
        let bodies: BodyDesk
        let questions: QuestionDesk
        let keyring: KeyringDesk
    }

    let ports: BrokerPorts
    let context: DeskContext
    let audit: AuditRecorder
    let clients: ClientRegistry
    let way: WayBack<FetchRouter>
    /// Set once, when all desks are there; they know this router, and it does not live longer than they.
    var desks: Desks!
    private(set) var table: FetchTable
    private var fetches: [FetchID: RunningFetch] = [:]
    /// Each with on whose behalf it came up.
    private var pendingOrders: [(FetchTable.Order, Cause)] = []
    private var isPerforming = false

    init(
        _ table: FetchTable, _ ports: BrokerPorts, _ context: DeskContext, _ audit: AuditRecorder,
        _ clients: ClientRegistry, _ way: WayBack<FetchRouter>
    ) {
        (self.table, self.ports, self.context) = (table, ports, context)
        (self.audit, self.clients, self.way) = (audit, clients, way)
    }

    subscript(id: FetchID) -> RunningFetch? { fetches[id] }

    var all: Dictionary<FetchID, RunningFetch>.Values { fetches.values }

    func add(_ fetch: RunningFetch) { fetches[fetch.id] = fetch }

    /// Returns whether it was running.
    func remove(_ fetch: RunningFetch) -> Bool { fetches.removeValue(forKey: fetch.id) != nil }

    /// Something has happened to a fetch, or to all: what follows from it is done.
    /// - Parameter cause: of what comes up in no fetch.
    func report(_ cause: Cause = .broker, _ event: (inout FetchTable, FetchEnvironment) -> [FetchTable.Order]) {
        perform(event(&table, environment), cause)
    }

    /// Changes what the fetches share.
    @discardableResult
    func change<Result>(_ change: (inout FetchTable) -> Result) -> Result { change(&table) }

    var environment: FetchEnvironment {
        FetchEnvironment(
            now: context.now, sinceEpoch: context.clock.sinceEpoch, proxy: context.options.proxy,
            hosts: context.options.hosts,
            schemes: context.options.schemes, usesNetrc: ports.netrc != nil && context.options.netrcFile != nil,
            makeClientNonce: { RandomText.make128Bits() })
    }

    // MARK: Orders

    /// Does what the table has decided, in its order; what comes of it returns as an event.
    /// - Parameter cause: of what came up in no fetch.
    func perform(_ orders: [FetchTable.Order], _ cause: Cause = .broker) {
        for order in orders {
            switch order {
            case .command: pendingOrders.append((order, cause))
            // Looked up now: by the time that its turn comes, the fetch may be over.
            case .effect(_, let id): pendingOrders.append((order, id.flatMap { fetches[$0]?.cause } ?? cause))
            }
        }
        guard !isPerforming else { return }
        isPerforming = true
        while !pendingOrders.isEmpty {
            let batch = pendingOrders
            pendingOrders = []
            for (order, cause) in batch { perform(order, cause) }
        }
        isPerforming = false
        desks.session.tickIfNeeded()
    }

    private func perform(_ order: FetchTable.Order, _ cause: Cause) {
        switch order {
        case .command(let command, let id):
            // It may be over by now.
            if let fetch = fetches[id] { perform(command, for: fetch) }
        case .effect(.tell(let event), let id): id.flatMap { fetches[$0] }.map { tell(event, of: $0) }
        case .effect(.note(let note), let id): id.flatMap { fetches[$0] }.map { audit.record(note, of: $0) }
        case .effect(.judge(let verdict), let id): id.flatMap { fetches[$0] }.map { clients.judge(verdict, of: $0) }
        case .effect(.store(let credential, let pattern), _): desks.keyring.keep(credential, for: pattern, cause)
        case .effect(.remove(let item, let credential), _): desks.keyring.discard(item, ifStill: credential, cause)
        case .effect(.announce(let change), _): clients.announce(change, cause)
        case .effect(.closeConnections(let identity), _): ports.transfers.forget(identity)
        case .effect(.keepTrust(let keys), _): ports.trust?.keep(keys)
        case .effect(.keepGrants(let standing), _): ports.grants?.keep(standing)
        }
    }

    private func perform(_ command: FetchCommand, for fetch: RunningFetch) {
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
        case .finish(let response): complete(fetch, with: response)
        case .fail(let failure): complete(fetch, with: failure)
        }
    }

    // MARK: Transfers

    private func start(_ request: TransferRequest, for fetch: RunningFetch) {
        desks.bodies.dropOpenBody(of: fetch)
        let id = fetch.id
        var request = request
        let holdings = fetch.owner.flatMap { clients[$0.connection]?.holdings }
        (request.allowance, request.disk) = (holdings?.responses, holdings?.disk)
        let transfer = ports.transfers.start(request) { [broker = way.broker] outcome in
            broker.assumeIsolated { $0.desks.fetches.transferEnded(outcome, of: id) }
        }
        (fetch.transfer, fetch.waitTimer) = (transfer, nil)
    }

    /// The fetch may be over by now: then nobody wants to know any more.
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
            perform(table.received(response, for: id, environment))
        case .failure(let failure): perform(table.failed(failure, for: id, environment))
        }
    }

    // MARK: Waiting

    /// For another fetch, or for a look-up.
    func beginWait(of fetch: RunningFetch) {
        let shortest = Duration.milliseconds(10)
        let id = fetch.id
        fetch.waitTimer = table.deadline(of: id).map { deadline in
            way.after(max(shortest, deadline - context.now)) { $0.waitIsOver(id) }
        }
    }

    private func waitIsOver(_ id: FetchID) {
        perform(table.expire(id, environment))
        // The deadline may have moved.
        if let fetch = fetches[id], fetch.waitTimer != nil, table.wait(of: id) != nil { beginWait(of: fetch) }
    }

    // MARK: Cancelling

    /// The fetch ends with `failure`, -32800 if nothing else is said. What it waits for is withdrawn first.
    func cancel(_ fetch: RunningFetch, _ failure: FetchFailure = FetchFailure(.cancelled, "the fetch was cancelled")) {
        cancel([fetch], failure)
    }

    /// Ends these together, so that none of them asks or sends what another one has waited for.
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

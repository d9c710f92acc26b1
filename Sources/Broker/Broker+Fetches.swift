internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

extension Router {
    /// Does what the table has decided, in its order; what comes of it returns as an event.
    /// - Parameter cause: of what came up in no fetch.
    func perform(_ orders: [FetchTable.Order], _ cause: Cause = .broker) {
        // Looked up now: by the time that its turn comes, the fetch may be over.
        pendingOrders += orders.map { order in
            let fetch = order.cause.flatMap { fetches[$0] }
            return CausedOrder(order: order, cause: fetch.map { $0.cause } ?? cause)
        }
        guard !isPerforming else { return }
        isPerforming = true
        while !pendingOrders.isEmpty {
            let batch = pendingOrders
            pendingOrders = []
            for order in batch { perform(order) }
        }
        isPerforming = false
        tickIfNeeded()
    }

    private func perform(_ caused: CausedOrder) {
        let (order, cause) = (caused.order, caused.cause)
        guard let id = order.fetch else { return performAside(order.command, cause) }
        guard let fetch = fetches[id] else { return }
        if order.command.isNextStep { fetch.waitTimer = nil }
        switch order.command {
        case .transfer(let request): start(request, for: fetch)
        case .ask(let challenge, let respondent): questions.ask(challenge, respondent, for: fetch)
        case .confirm(let request): questions.confirm(request, for: fetch)
        case .consult(let consultation): questions.consult(consultation, for: fetch)
        case .lookUp(let queries):
            beginWait(of: fetch)
            keyring.lookUp(queries, for: fetch)
        case .readNetrc(let query):
            beginWait(of: fetch)
            keyring.readNetrc(query, for: fetch)
        case .wait: beginWait(of: fetch)
        case .needBody: questions.askForBody(of: fetch)
        case .tell(let event): tell(event, of: fetch)
        case .finish(let response): complete(fetch, with: response)
        case .fail(let failure): complete(fetch, with: failure)
        case .note(let note): audit.record(note, of: fetch)
        case .judge(let verdict): clients.judge(verdict, of: fetch)
        case .store, .remove, .announce, .closeConnections, .keepTrust, .keepGrants: performAside(order.command, cause)
        }
    }

    private func performAside(_ command: FetchTable.Command, _ cause: Cause) {
        switch command {
        case .store(let credential, let pattern): keyring.keep(credential, for: pattern, cause)
        case .remove(let item, let credential): keyring.discard(item, ifStill: credential, cause)
        case .announce(let change): clients.announce(change, cause)
        case .closeConnections(let identity): transfers.forget(identity)
        case .keepTrust(let keys): trust?.keep(keys)
        case .keepGrants(let standing): grants?.keep(standing)
        default: break
        }
    }

    private func start(_ request: TransferRequest, for fetch: RunningFetch) {
        bodies.dropOpenBody(of: fetch)
        let id = fetch.id
        var request = request
        let holdings = fetch.owner.flatMap { clients[$0.connection]?.holdings }
        (request.allowance, request.disk) = (holdings?.responses, holdings?.disk)
        let transfer = transfers.start(request) { [broker = way.broker] outcome in
            broker.assumeIsolated { $0.router.transferEnded(outcome, of: id) }
        }
        fetch.transfer = transfer
    }

    /// The fetch may be over by now: then nobody wants to know any more.
    private func transferEnded(_ outcome: TransferPort.Outcome, of id: FetchID) {
        guard let fetch = fetches[id] else {
            if case .success(let response) = outcome, let body = response.openBody { transfers.cancel(body.transfer) }
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

    // MARK: The end of a fetch

    private func complete(_ fetch: RunningFetch, with response: FetchResponse) {
        if let source = response.authentication?.source { audit.counters.answeredFrom[source, default: 0] += 1 }
        log.info(
            "fetch done",
            metadata: [
                "fetch": "\(fetch.id)", "origin": "\(response.url.origin.text)",
                "status": "\(response.response.status)", "exchanges": "\(response.exchanges)",
            ])
        let openBody = fetch.openBody
        fetch.openBody = nil
        defer { bodies.releaseSource(of: fetch) }
        guard let connection = finish(fetch), let owner = fetch.owner else {
            if let openBody { transfers.cancel(openBody.transfer) }
            return
        }
        let name = fetch.id.description
        let body = response.response.body
        let isInline =
            openBody == nil && fetch.steps == nil && body.count <= fetch.params.maxInlineBodyBytes
            && connection.hasRoom(forBody: body.count)
        let result = FetchRunResult(
            fetchID: name, status: response.response.status, reason: response.response.reason,
            url: response.url.text,
            httpVersion: response.response.httpVersion, headers: response.response.headers,
            body: isInline ? .inline(body) : .handle, bodyBytes: openBody.map(\.announcedBytes) ?? body.count,
            authentication: response.authentication, exchanges: response.exchanges,
            proxyAuthentication: response.proxyAuthentication, unanswered: response.unanswered,
            totalTime: clock.now - fetch.since,
            challengeTime: fetch.challengeTime)
        if fetch.steps != nil { connection.notify(.fetchHeaders, result.headersJSON(owner.requestID)) }
        if !isInline {
            do throws(RPCError) { try clients.checkRoomForBody(of: connection) } catch {
                if let openBody { transfers.cancel(openBody.transfer) }
                let text = "\(error.message) The request was sent, and its response is lost."
                return fail(fetch, FetchFailure(.busy, text), on: connection)
            }
            bodies.open(response, fetch, result, for: connection)
        }
        if let call = owner.call { connection.complete(call, .success(result.json)) }
        clients.checkReplies(of: connection)
    }

    private func fail(_ fetch: RunningFetch, _ failure: FetchFailure, on connection: ClientConnection) {
        let name = fetch.id.description
        let error = RPCError(failure.kind, failure.text, cause: failure.cause, fetchID: name)
        if let call = fetch.owner?.call { connection.complete(call, .failure(error)) }
        bodies.endSteps(of: fetch, failure, connection)
    }

    private func complete(_ fetch: RunningFetch, with failure: FetchFailure) {
        log.info("fetch failed", metadata: ["fetch": "\(fetch.id)", "kind": "\(failure.kind.rawValue)"])
        if failure.kind == .denied { audit.recordDenial(.denied, fetch.cause, origin: fetch.origin) }
        bodies.dropOpenBody(of: fetch)
        bodies.releaseSource(of: fetch)
        guard let connection = finish(fetch) else { return bodies.endSteps(of: fetch, failure, nil) }
        fail(fetch, failure, on: connection)
    }

    /// `nil` when nobody is there any more to be told.
    private func finish(_ fetch: RunningFetch) -> ClientConnection? {
        guard fetches.removeValue(forKey: fetch.id) != nil else { return nil }
        clients.tellOutcome(.abandoned, of: fetch)
        audit.counters.fetchesDone += 1
        guard let owner = fetch.owner, let connection = clients[owner.connection] else { return nil }
        fetch.leave(connection)
        return connection
    }

    /// Only what the client has asked to be told.
    private func tell(_ event: FetchEvent, of fetch: RunningFetch) {
        switch event {
        case .redirected(let status, let from, let to) where fetch.params.notify.contains(.redirect):
            notify(
                .fetchRedirect, ["status": .integer(status), "from": .string(from), "to": .string(to)], of: fetch)
        case .responded(let status, let headers) where fetch.params.notify.contains(.headers) && fetch.steps == nil:
            notify(.fetchHeaders, ["status": .integer(status), "headers": headers.json], of: fetch)
        case .waiting(let wait) where fetch.params.notify.contains(.waiting):
            notify(.fetchWaiting, describe(wait), of: fetch)
        case .requested(let request): notify(.fetchRequest, request.json, of: fetch)
        case .answered(let response): notify(.fetchResponse, response.json, of: fetch)
        case .redirected, .responded, .waiting:
            break
        }
    }

    private func notify(_ method: BrokerMethodName, _ members: JSON, of fetch: RunningFetch) {
        guard let owner = fetch.owner, let connection = clients[owner.connection] else { return }
        let names: JSON = ["fetchId": .string("\(fetch.id)"), "requestId": owner.requestID.json]
        connection.notify(method, names.adding(members))
    }

    // MARK: Cancelling

    /// The fetch ends with `failure`, -32800 if nothing else is said. What it waits for is withdrawn first.
    func cancel(
        _ fetch: RunningFetch, _ failure: FetchFailure = FetchFailure(.cancelled, "the fetch was cancelled")
    ) {
        cancel([fetch], failure)
    }

    /// Ends these together, so that none of them asks or sends what another one has waited for.
    func cancel(
        _ fetches: [RunningFetch], _ failure: FetchFailure = FetchFailure(.cancelled, "the fetch was cancelled")
    ) {
        for fetch in fetches {
            questions.withdraw(of: fetch)
            if let transfer = fetch.transfer { transfers.cancel(transfer) }
        }
        perform(table.abort(fetches.map(\.id), failure, environment))
    }

    func cancelFetches(of connection: ClientConnection) {
        cancel(connection.fetches.compactMap { fetches[$0] })
        bodies.forget(connection)
    }

    func cancelFetch(_ params: FetchReference, of connection: ClientConnection) throws -> JSON {
        if let id = FetchID(params.fetchID), connection.fetches.contains(id), let fetch = fetches[id] {
            cancel(fetch)
            return ["cancelled": true]
        }
        return ["cancelled": .boolean(bodies.drop(params.fetchID, of: connection))]
    }

    /// What a fetch does, as `fetch/list` shows it.
    private func word(for fetch: RunningFetch) -> String {
        if fetch.transfer != nil { return "transferring" }
        guard let question = questions.question(of: fetch) else { return "waiting" }
        if case .body = question.content { return "waiting" }
        return "challenged"
    }

    func listFetches(of connection: ClientConnection) -> JSON {
        let own = connection.fetches.compactMap { fetches[$0] }
        let running = own.sorted { $0.id.number < $1.id.number }.map { fetch -> JSON in
            let entry: JSON = [
                "fetchId": .string("\(fetch.id)"), "url": .string(fetch.params.url),
                "method": .string(fetch.params.method),
                "state": .string(table.wait(of: fetch.id) == nil ? word(for: fetch) : "waiting"),
                "runningMs": .integer((clock.now - fetch.since).wholeMilliseconds),
            ]
            return table.wait(of: fetch.id).map { entry.adding(describe($0)) } ?? entry
        }
        let held = bodies.names(of: connection).map { id -> JSON in ["fetchId": .string(id), "state": "holding"] }
        return ["fetches": .array(running + held)]
    }
}

/// An order of the table, and on whose behalf it came up.
struct CausedOrder {
    let order: FetchTable.Order
    let cause: Cause
}

extension FetchTable.Command {
    /// Whether a fetch is at something else from now on.
    fileprivate var isNextStep: Bool {
        switch self {
        case .transfer, .ask, .confirm, .consult, .lookUp, .readNetrc, .wait, .needBody, .finish, .fail: true
        case .tell, .note, .judge, .store, .remove, .announce, .closeConnections, .keepTrust, .keepGrants: false
        }
    }
}

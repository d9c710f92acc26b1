internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

extension Broker {
    func startFetch(
        _ call: ConnectionMachine.CallID, _ json: JSON?, from connection: ClientConnection
    ) throws {
        if let problem = FetchRunParams.unsupported(in: json) { throw RPCError(.notSupported, problem) }
        let params = try FetchRunParams(json)
        let plan = try FetchPlan(params, isSubscribed: connection.isSubscribed)
        counters.fetchesStarted += 1
        let fetch = RunningFetch(
            id: "f\(counters.fetchesStarted)", connection: connection.id, call: call,
            requestID: connection.requestID(of: call), params: params, machine: FetchMachine(plan), since: clock.now)
        fetches[fetch.id] = fetch
        connection.fetches.insert(fetch.id)
        log.debug("fetch started", metadata: ["fetch": "\(fetch.id)", "origin": "\(plan.url.origin.text)"])
        perform(fetch.machine.start(environment, session: &session), for: fetch)
    }

    /// Does what the machine has decided. What comes of it returns as an event.
    func perform(_ step: FetchStep, for fetch: RunningFetch) {
        for event in step.events { tell(event, of: fetch) }
        switch step.action {
        case .transfer(let request): start(request, for: fetch)
        case .ask(let challenge): ask(challenge, for: fetch)
        case .finish(let response): complete(fetch, with: response)
        case .fail(let failure): complete(fetch, with: failure)
        }
    }

    private func start(_ request: TransferRequest, for fetch: RunningFetch) {
        let id = fetch.id
        let transfer = transfers.start(request) { [self, loop] outcome in
            loop.post { self.assumeIsolated { $0.transferEnded(outcome, of: id) } }
        }
        fetch.state = .transferring(transfer)
    }

    /// The fetch may be over by now: then nobody wants to know any more.
    private func transferEnded(_ outcome: TransferPort.Outcome, of fetchID: String) {
        guard let fetch = fetches[fetchID] else { return }
        switch outcome {
        case .success(let response):
            perform(fetch.machine.received(response, environment, session: &session), for: fetch)
        case .failure(let failure):
            perform(fetch.machine.failed(failure), for: fetch)
        }
    }

    // MARK: The end of a fetch

    private func complete(_ fetch: RunningFetch, with response: FetchResponse) {
        guard let connection = finish(fetch) else { return }
        let body = response.response.body
        let isInline = body.count <= fetch.params.maxInlineBodyBytes
        guard isInline || hold(body, for: fetch, of: connection) else {
            let text =
                "This connection holds more than \(Limits.heldBodyBytesPerConnection) bytes of bodies. Read them first."
            connection.complete(fetch.call, .failure(RPCError(.busy, text, fetchID: fetch.id)))
            return
        }
        if let source = response.authentication?.source { counters.answeredFrom[source, default: 0] += 1 }
        log.info(
            "fetch done",
            metadata: [
                "fetch": "\(fetch.id)", "origin": "\(response.url.origin.text)",
                "status": "\(response.response.status)", "exchanges": "\(response.exchanges)",
            ])
        let result = FetchRunResult(
            fetchID: fetch.id, status: response.response.status, url: response.url.text,
            httpVersion: response.response.httpVersion, headers: response.response.headers,
            body: isInline ? .inline(body) : .handle, bodyBytes: body.count,
            authentication: response.authentication, exchanges: response.exchanges,
            totalTime: clock.now - fetch.since, challengeTime: fetch.challengeTime)
        connection.complete(fetch.call, .success(result.json))
    }

    private func complete(_ fetch: RunningFetch, with failure: FetchFailure) {
        guard let connection = finish(fetch) else { return }
        log.info("fetch failed", metadata: ["fetch": "\(fetch.id)", "kind": "\(failure.kind.rawValue)"])
        connection.complete(fetch.call, .failure(RPCError(failure.kind, failure.text, fetchID: fetch.id)))
    }

    /// `nil` when nobody is there any more to be told.
    private func finish(_ fetch: RunningFetch) -> ClientConnection? {
        guard fetches.removeValue(forKey: fetch.id) != nil else { return nil }
        counters.fetchesDone += 1
        let connection = connections[fetch.connection]
        connection?.fetches.remove(fetch.id)
        return connection
    }

    private func tell(_ event: FetchStep.Event, of fetch: RunningFetch) {
        guard let connection = connections[fetch.connection] else { return }
        let names = JSON.object(["fetchId": .string(fetch.id), "requestId": fetch.requestID.json])
        switch event {
        case .redirected(let status, let from, let to) where fetch.params.notify.contains(.redirect):
            connection.notify(
                .fetchRedirect,
                names.adding(["status": .integer(status), "from": .string(from), "to": .string(to)]))
        case .responded(let status, let headers) where fetch.params.notify.contains(.headers):
            connection.notify(.fetchHeaders, names.adding(["status": .integer(status), "headers": headers.json]))
        case .redirected, .responded:
            break
        }
    }

    // MARK: Cancelling

    /// The fetch ends with -32800. What it waits for is withdrawn first.
    func cancel(_ fetch: RunningFetch) {
        switch fetch.state {
        case .challenged(let challengeID, _): withdraw(challengeID, because: .cancelled)
        case .transferring(let transfer): transfers.cancel(transfer)
        case nil: break
        }
        perform(fetch.machine.abort(FetchFailure(.cancelled, "the fetch was cancelled")), for: fetch)
    }

    func cancelFetches(of connection: ClientConnection) {
        for fetch in connection.fetches.compactMap({ fetches[$0] }) { cancel(fetch) }
    }

    func cancelFetch(_ params: FetchReference, of connection: ClientConnection) throws -> JSON {
        if connection.fetches.contains(params.fetchID), let fetch = fetches[params.fetchID] {
            cancel(fetch)
            return ["cancelled": true]
        }
        return ["cancelled": .boolean(connection.bodies.drop(params.fetchID))]
    }

    func listFetches(of connection: ClientConnection) -> JSON {
        let own = connection.fetches.compactMap { fetches[$0] }
        let running = own.sorted { $0.since < $1.since }.map { fetch -> JSON in
            let state = if case .challenged? = fetch.state { "challenged" } else { "transferring" }
            return [
                "fetchId": .string(fetch.id), "url": .string(fetch.params.url), "method": .string(fetch.params.method),
                "state": .string(state), "runningMs": .integer((clock.now - fetch.since).wholeMilliseconds),
            ]
        }
        let held = connection.bodies.fetchIDs.map { id -> JSON in ["fetchId": .string(id), "state": "holding"] }
        return ["fetches": .array(running + held)]
    }

    // MARK: Bodies that are read in steps

    private func hold(_ body: [UInt8], for fetch: RunningFetch, of connection: ClientConnection) -> Bool {
        guard connection.bodies.hold(body, for: fetch.id, now: clock.now) else { return false }
        Task { [weak connection] in
            while let deadline = connection?.bodies.deadline(of: fetch.id) {
                guard deadline > clock.now else {
                    connection?.bodies.drop(fetch.id)
                    return
                }
                try? await clock.sleep(for: deadline - clock.now)
            }
        }
        return true
    }

    func read(_ params: FetchReadParams, of connection: ClientConnection) throws -> JSON {
        guard let result = connection.bodies.read(params, now: clock.now) else {
            throw RPCError(
                .unknownFetch,
                "No body is held for the fetch \"\(params.fetchID.shortened)\": it was read to its end, or waited too long."
            )
        }
        return result.json
    }
}

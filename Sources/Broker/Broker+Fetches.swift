internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

extension Broker {
    func startFetch(
        _ call: ConnectionMachine.CallID, _ json: JSON?, from connection: ClientConnection
    ) throws {
        let params = try FetchRunParams(json)
        let plan = try FetchPlan(params, isSubscribed: connection.isSubscribed)
        counters.fetchesStarted += 1
        let fetch = RunningFetch(
            id: "f\(counters.fetchesStarted)", connection: connection.id, call: call,
            requestID: connection.requestID(of: call), params: params, since: clock.now)
        connection.fetches[fetch.id] = fetch
        log.debug("fetch started", metadata: ["fetch": "\(fetch.id)", "origin": "\(plan.url.origin.text)"])
        fetch.task = Task.immediate { await self.run(fetch, plan) }
    }

    /// Does what the machine says until it ends. The loop itself decides nothing.
    private func run(_ fetch: RunningFetch, _ plan: FetchPlan) async {
        var machine = FetchMachine(plan)
        var step = machine.start(environment, session: &session)
        while true {
            for event in step.events { tell(event, of: fetch) }
            switch step.action {
            case .transfer(let request):
                step = await transfer(request, &machine)
            case .ask(let challenge):
                step = await ask(challenge, for: fetch, &machine)
            case .finish(let response):
                return complete(fetch, with: response)
            case .fail(let failure):
                return complete(fetch, with: failure)
            }
        }
    }

    private func transfer(_ request: TransferRequest, _ machine: inout FetchMachine) async -> FetchStep {
        do throws(TransferFailure) {
            let response = try await transfers.perform(request)
            return machine.received(response, environment, session: &session)
        } catch {
            return machine.failed(error)
        }
    }

    private func ask(_ challenge: Challenge, for fetch: RunningFetch, _ machine: inout FetchMachine) async -> FetchStep
    {
        let start = clock.now
        let outcome = await ask(challenge, for: fetch)
        fetch.challengeTime += clock.now - start
        fetch.state = .transferring
        switch outcome {
        case .answer(let answer): return machine.answered(answer, environment, session: &session)
        case .abort(let failure): return machine.abort(failure)
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
        counters.fetchesDone += 1
        guard let connection = connections[fetch.connection] else { return nil }
        connection.fetches[fetch.id] = nil
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
    func cancel(_ fetch: RunningFetch, of connection: ClientConnection) {
        if case .challenged(let challengeID) = fetch.state {
            withdraw(challengeID, because: .cancelled)
            settle(
                challengeID, .abort(FetchFailure(.cancelled, "the fetch was cancelled while its challenge was open")))
        }
        fetch.task?.cancel()
    }

    func cancelAll(of connection: ClientConnection) {
        for fetch in connection.fetches.values { cancel(fetch, of: connection) }
    }

    func cancelFetch(_ params: FetchReference, of connection: ClientConnection) throws -> JSON {
        if let fetch = connection.fetches[params.fetchID] {
            cancel(fetch, of: connection)
            return ["cancelled": true]
        }
        return ["cancelled": .boolean(connection.bodies.drop(params.fetchID))]
    }

    func listFetches(of connection: ClientConnection) -> JSON {
        let running = connection.fetches.values.sorted { $0.since < $1.since }.map { fetch -> JSON in
            let state =
                switch fetch.state {
                case .transferring: "transferring"
                case .challenged: "challenged"
                }
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

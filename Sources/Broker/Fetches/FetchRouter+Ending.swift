internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Completes fetches, and notifies their clients.
extension FetchRouter {
    func complete(_ fetch: RunningFetch, with response: FetchResponse) {
        if let source = response.authentication?.source { audit.counters.answeredFrom[source, default: 0] += 1 }
        context.log.info(
            "fetch done",
            metadata: [
                "fetch": "\(fetch.id)", "origin": "\(response.url.origin.text)",
                "status": "\(response.response.status)", "exchanges": "\(response.exchanges)",
            ])
        let openBody = fetch.openBody
        fetch.openBody = nil
        defer { desks.bodies.releaseSource(of: fetch) }
        desks.questions.record(response.unanswered, of: fetch)
        let connection = finish(fetch)
        if let completion = fetch.completion { return completion(.success(response)) }
        guard let connection, let owner = fetch.owner else {
            if let openBody { ports.transfers.cancel(openBody.transfer) }
            return
        }
        if let answer = fetch.answer {
            // In another protocol the program continues to send.
            if response.response.status == 101 { answer.source = fetch.source.take() }
            return desks.fronts.received(answer, response, openBody)
        }
        let name = fetch.id.description
        let body = response.response.body
        let isInline =
            openBody == nil && fetch.request.options.delivery.isInline(body.count)
            && connection.hasRoom(forBody: body.count)
        let result = FetchRunResult(
            fetchID: name, status: response.response.status, reason: response.response.reason,
            url: response.url.text,
            httpVersion: response.response.httpVersion, headers: response.response.headers,
            body: isInline ? .inline(BodyValue(body)) : .handle,
            bodyBytes: openBody.map(\.announcedBytes) ?? body.count,
            authentication: response.authentication, exchanges: response.exchanges,
            proxyAuthentication: response.proxyAuthentication, unanswered: response.unanswered,
            totalTime: context.now - fetch.since,
            challengeTime: fetch.challengeTime)
        if fetch.steps != nil { connection.notify(.fetchHeaders, result.headersJSON(owner.requestID)) }
        if !isInline {
            do throws(RPCError) { try clients.checkRoomForBody(of: connection) } catch {
                if let openBody { ports.transfers.cancel(openBody.transfer) }
                let text = "the request was sent, but its response is lost: \(error.message)"
                return fail(fetch, FetchFailure(.busy, text), on: connection)
            }
            desks.bodies.open(response, fetch, result, for: connection)
        }
        if let call = owner.call { connection.complete(call, .success(result)) }
        clients.checkReplies(of: connection)
    }

    private func fail(_ fetch: RunningFetch, _ failure: FetchFailure, on connection: ClientConnection) {
        let name = fetch.id.description
        let error = RPCError(failure.kind, failure.text, cause: failure.cause, fetchID: name)
        if let call = fetch.owner?.call { connection.complete(call, .failure(error)) }
        desks.bodies.endSteps(of: fetch, failure, connection)
    }

    func complete(_ fetch: RunningFetch, with failure: FetchFailure) {
        context.log.info("fetch failed", metadata: ["fetch": "\(fetch.id)", "kind": "\(failure.kind.rawValue)"])
        if failure.kind == .denied { audit.recordDenial(.denied, fetch.cause, origin: fetch.origin) }
        desks.bodies.dropOpenBody(of: fetch)
        desks.bodies.releaseSource(of: fetch)
        let connection = finish(fetch)
        if let completion = fetch.completion { return completion(.failure(failure)) }
        guard let connection else { return desks.bodies.endSteps(of: fetch, failure, nil) }
        if let answer = fetch.answer {
            return desks.fronts.failed(answer, failure)
        }
        fail(fetch, failure, on: connection)
    }

    /// Removes the fetch, and returns the client that gets the reply; `nil` if the fetch was removed already or the
    /// connection is closed.
    private func finish(_ fetch: RunningFetch) -> ClientConnection? {
        guard remove(fetch) else { return nil }
        clients.notifyOutcome(.abandoned, of: fetch)
        audit.counters.fetchesDone += 1
        guard let owner = fetch.owner, let connection = clients[owner.connection] else { return nil }
        fetch.leave(connection)
        return connection
    }

    /// Notifies the client of `event`. Some events are sent only if the client has requested them in `params.notify`.
    func notify(_ event: FetchEvent, of fetch: RunningFetch) {
        switch event {
        case .redirected(let status, let from, let to) where fetch.request.notify.contains(.redirect):
            notify(.fetchRedirect, ["status": .integer(status), "from": .string(from), "to": .string(to)], of: fetch)
        case .responded(let status, let headers) where fetch.request.notify.contains(.headers) && fetch.steps == nil:
            notify(.fetchHeaders, ["status": .integer(status), "headers": headers.json], of: fetch)
        case .waiting(let wait) where fetch.request.notify.contains(.waiting):
            notify(.fetchWaiting, wait.json(now: context.now), of: fetch)
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
}

extension FetchWait {
    /// Returns the members for `fetch/waiting` and `fetch/list`.
    func json(now: Duration) -> JSON {
        [
            "for": .string(reason.rawValue), "protectionSpace": space.json,
            "sinceMs": .integer(max(0, (now - since).wholeMilliseconds)),
        ]
    }
}

internal import Glibc
internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// Bodies that are taken in steps, or through a connection of their own.
extension Router {
    /// The body of a fetch whose response is there: what of it has come, and what is still on its way.
    func openBody(
        of fetched: FetchResponse, _ fetch: RunningFetch, _ result: FetchRunResult, for connection: ClientConnection
    ) {
        let response = fetched.response
        let (name, steps) = (fetch.id.description, fetch.steps)
        let transfer = response.openBody?.transfer ?? transfers.open(response.body)
        connection.bodies.add(
            OpenBodies.Entry(
                transfer: transfer, result: steps == nil ? nil : result, token: steps?.token, source: fetch.source,
                proofs: fetched.proofs, share: response.share),
            for: name)
        fetch.source = nil
        let id = connection.id
        transfers.follow(transfer, completion: way.callback { $0.bodyEnded(name, $1, of: id) })
        if let socket = steps?.socket { transfers.attach(transfer, socket: socket) }
        if let read = steps?.read { self.read(name, transfer, read.maxBytes, read.call, of: connection) }
    }

    func bodyEnded(_ name: String, _ delivery: TransferPort.Delivery, of id: ConnectionID) {
        guard let connection = clients[id], let entry = connection.bodies.remove(name) else { return }
        release(entry)
        perform(table.noteEnd(of: entry.proofs))
        guard var result = entry.result else { return }
        switch delivery {
        case .success(let count):
            result.bodyBytes = count
            connection.notify(.fetchCompleted, result.completedJSON)
        case .failure(let failure):
            notifyFailure(FetchFailure(failure), of: name, to: connection)
        }
        connection.closeIfDone()
    }

    func notifyFailure(_ failure: FetchFailure, of name: String, to connection: ClientConnection) {
        let error = RPCError(failure.kind, failure.text, cause: failure.cause, fetchID: name)
        connection.notify(.fetchCompleted, ["fetchId": .string(name), "error": error.json])
    }

    // MARK: Reading

    func read(_ params: FetchReadParams, _ call: ConnectionMachine.CallID, of connection: ClientConnection) throws {
        if let entry = connection.bodies[params.fetchID] {
            guard !entry.isBeingRead else { throw RPCError.beingRead }
            return read(params.fetchID, entry.transfer, params.maxBytes, call, of: connection)
        }
        guard let id = FetchID(params.fetchID), connection.fetches.contains(id), let fetch = fetches[id],
            fetch.steps != nil
        else {
            throw noBody(params.fetchID)
        }
        guard fetch.steps?.read == nil, fetch.steps?.socket == nil else {
            throw RPCError.beingRead
        }
        fetch.steps?.read = (call, params.maxBytes)
    }

    private func read(
        _ name: String, _ transfer: TransferID, _ maxBytes: Int, _ call: ConnectionMachine.CallID,
        of connection: ClientConnection
    ) {
        let id = connection.id
        connection.bodies.setBeingRead(true, name)
        transfers.read(transfer, maxBytes: maxBytes, completion: way.callback { $0.hasRead(name, $1, call, of: id) })
    }

    private func hasRead(
        _ name: String, _ result: Result<BodyPart, TransferFailure>, _ call: ConnectionMachine.CallID,
        of id: ConnectionID
    ) {
        guard let connection = clients[id] else { return }
        connection.bodies.setBeingRead(false, name)
        switch result {
        case .success(let part):
            let result = FetchReadResult(data: part.bytes, offsetBytes: part.offset, isAtEnd: part.isAtEnd)
            connection.complete(call, .success(result.json))
            clients.checkReplies(of: connection)
            // Not a moment later: the client may ask for more at once.
            if part.isAtEnd { bodyEnded(name, .success(part.offset + part.bytes.count), of: id) }
        case .failure where connection.bodies[name] == nil:
            connection.complete(call, .failure(noBody(name)))
        case .failure(let failure):
            let failure = FetchFailure(failure)
            connection.complete(call, .failure(RPCError(failure.kind, failure.text, cause: failure.cause)))
        }
    }

    private func noBody(_ name: String) -> RPCError {
        RPCError(
            .unknownFetch,
            "No body is held for the fetch \"\(name.shortened)\": it was read to its end, or waited too long.")
    }

    // MARK: A connection of its own

    /// From the reply on the connection carries bytes of a body, and nothing else.
    func attach(
        _ params: FetchAttachParams, _ call: ConnectionMachine.CallID, from connection: ClientConnection
    ) throws {
        guard let reference = tokens[params.token], let owner = clients[reference.connection],
            TokenScope(owner).admits(connection)
        else {
            throw RPCError(
                .unknownFetch, "No fetch waits for this token: it has ended, or its body was attached before.")
        }
        guard connection.mayBeHandedOver else {
            throw RPCError(
                .invalidRequest,
                "fetch/attach needs a connection of its own: without open calls or fetches, and with nothing sent after the request before its reply."
            )
        }
        guard reference.freeSides.contains(params.side) else {
            throw RPCError(
                .unknownFetch,
                "The \(params.side.rawValue) of this fetch was attached before, or has no body to attach.")
        }
        switch params.side {
        case .response:
            let steps = fetches[reference.fetch]?.steps
            let isBeingRead = owner.bodies[reference.fetch.description]?.isBeingRead ?? false
            guard steps?.socket == nil, steps?.read == nil, !isBeingRead else {
                throw RPCError(.busy, "Somebody reads the body of this fetch already.")
            }
        case .request:
            guard (fetches[reference.fetch]?.source ?? owner.bodies[reference.fetch.description]?.source) != nil else {
                throw RPCError(.unknownFetch, "The request of this fetch has been sent already.")
            }
        }
        tokens[params.token]?.freeSides.remove(params.side)
        let id = owner.id
        connection.handOver(call, to: way.callback { $0.attached($1, params.side, reference.fetch, of: id) })
    }

    private func attached(_ socket: Int32, _ side: FetchAttachParams.Side, _ id: FetchID, of owner: ConnectionID) {
        let (fetch, entry) = (fetches[id], clients[owner]?.bodies[id.description])
        switch side {
        case .request:
            if let source = fetch?.source ?? entry?.source { return transfers.attach(source, socket: socket) }
        case .response:
            if let entry { return transfers.attach(entry.transfer, socket: socket) }
            if let fetch, fetch.steps != nil {
                fetch.steps?.socket = socket
                return
            }
        }
        Glibc.close(socket)
    }

    // MARK: The request's body, once more

    func askForBody(of fetch: RunningFetch) {
        releaseSource(of: fetch)
        guard let owner = fetch.owner, let connection = clients[owner.connection], !connection.hasInputEnded else {
            return perform(table.given(nil, for: fetch.id, environment))
        }
        let request = connection.request(.fetchNeedBody, ["fetchId": .string("\(fetch.id)")])
        connection.consultations[request] = fetch.id
        let (id, client) = (fetch.id, connection.id)
        let deadline = after(options.challengeDeadline) { broker in
            guard let connection = broker.clients[client] else { return }
            connection.withdraw(request: request)
            broker.give(nil, to: id, of: connection, request)
        }
        fetch.state = .needingBody(connection.id, request: request, deadline: deadline)
    }

    /// The first answer counts. Silence, and what is not understood, gives no body.
    func give(_ body: NeededBody?, to id: FetchID, of connection: ClientConnection, _ request: Int) {
        guard connection.consultations.removeValue(forKey: request) != nil, let fetch = fetches[id],
            case .needingBody(_, _, let deadline) = fetch.state
        else { return }
        deadline.cancel()
        switch body {
        case nil:
            perform(table.given(nil, for: id, environment))
        case .bytes(let bytes)?:
            if let shortage = connection.holdings.requests.shortage(for: bytes.count) {
                return cancel(fetch, FetchFailure(.busy, shortage.requestText))
            }
            fetch.heldBytes += bytes.count
            fetch.holding?.grow(by: bytes.count)
            perform(table.given(.bytes(bytes), for: id, environment))
        case .attached(let attached)?:
            let stream = makeStream(attached, keepsCopy: false, for: connection)
            fetch.source = stream.source
            if let token = fetch.steps?.token { tokens[token]?.freeSides.insert(.request) }
            perform(table.given(.stream(stream), for: id, environment))
        }
    }

    func releaseSource(of fetch: RunningFetch) {
        if let source = fetch.source { transfers.release(source) }
        fetch.source = nil
    }

    /// Nobody attaches anything to it any more.
    func release(_ entry: OpenBodies.Entry) {
        if let token = entry.token { tokens[token] = nil }
        if let source = entry.source { transfers.release(source) }
    }

    /// What was begun in steps has its `fetch/completed`.
    func cancelBodies(of connection: ClientConnection) {
        let failure = TransferFailure(.cancelled, "the broker is closing")
        for name in connection.bodies.fetchIDs {
            if let entry = connection.bodies[name] { transfers.cancel(entry.transfer) }
            bodyEnded(name, .failure(failure), of: connection.id)
        }
    }

    func dropBody(_ name: String, of connection: ClientConnection) -> Bool {
        guard let entry = connection.bodies[name] else { return false }
        transfers.cancel(entry.transfer)
        return true
    }
}

extension RPCError {
    fileprivate static let beingRead = RPCError(
        .busy, "Somebody reads the body of this fetch already. Wait for that reply.")
}

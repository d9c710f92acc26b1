internal import Glibc
internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// Manages bodies that are read with `fetch/read` or through a separate connection (`fetch/attach`). Owns the unread
/// response bodies and the attach tokens.
final class BodyDesk {
    private let transfers: any TransferPort
    private let clients: ClientRegistry
    private unowned let fetches: FetchRouter
    private let reference: DeskReference<BodyDesk>
    private var bodies: [ConnectionID: OpenBodies] = [:]
    /// Fetches begun with `fetch/start`, by attach token.
    private var tokens: [String: StepReference] = [:]

    init(_ fetches: FetchRouter, _ reference: DeskReference<BodyDesk>) {
        (transfers, clients) = (fetches.ports.transfers, fetches.clients)
        (self.fetches, self.reference) = (fetches, reference)
    }

    /// Whether there are unread response bodies.
    var isBusy: Bool { bodies.values.contains { $0.count > 0 } }

    func names(of connection: ClientConnection) -> [String] { bodies[connection.id]?.fetchIDs ?? [] }

    func transfer(of id: FetchID, _ connection: ConnectionID) -> TransferID? {
        bodies[connection]?[id.description]?.transfer
    }

    /// Makes the response body of a fetch readable, whether or not it was received completely.
    func open(
        _ fetched: FetchResponse, _ fetch: RunningFetch, _ result: FetchRunResult, for connection: ClientConnection
    ) {
        let response = fetched.response
        let (name, steps) = (fetch.id.description, fetch.steps)
        let transfer = response.openBody?.transfer ?? transfers.open(response.body)
        bodies[connection.id, default: OpenBodies(connection.quotas.bodies)].add(
            OpenBodies.Entry(
                transfer: transfer, result: steps == nil ? nil : result, token: steps?.token, source: fetch.source,
                proofs: fetched.proofs, share: response.share),
            for: name)
        fetch.source = nil
        let id = connection.id
        transfers.follow(transfer, completion: reference.callback { $0.bodyEnded(name, $1, of: id) })
        if let socket = steps?.socket { transfers.attach(transfer, socket: socket) }
        if let read = steps?.read { self.read(name, transfer, read.maxBytes, read.call) }
    }

    private func bodyEnded(_ name: String, _ delivery: TransferPort.Delivery, of id: ConnectionID) {
        guard let connection = clients[id], let entry = bodies[id]?.remove(name) else { return }
        release(entry)
        fetches.perform(fetches.change { $0.recordEnd(of: entry.proofs) })
        guard let result = entry.result else { return }
        switch delivery {
        case .success(let count):
            connection.notify(.fetchCompleted, result.completedJSON(bodyBytes: count))
        case .failure(let failure):
            notifyFailure(FetchFailure(failure), of: name, to: connection)
        }
        connection.closeIfDone()
    }

    private func notifyFailure(_ failure: FetchFailure, of name: String, to connection: ClientConnection) {
        let error = RPCError(failure.kind, failure.text, cause: failure.cause, fetchID: name)
        connection.notify(.fetchCompleted, ["fetchId": .string(name), "error": error.json])
    }

    // MARK: Reading

    func read(_ params: FetchRead, _ call: Call<FetchRead>, of connection: ClientConnection) throws {
        if let entry = bodies[connection.id]?[params.fetchID] {
            guard !entry.isBeingRead else { throw RPCError.beingRead }
            return read(params.fetchID, entry.transfer, params.maxBytes, call)
        }
        guard let id = FetchID(params.fetchID), connection.fetches.contains(id), let fetch = fetches[id],
            fetch.steps != nil
        else {
            throw noBody(params.fetchID)
        }
        guard fetch.steps?.read == nil, fetch.steps?.socket == nil else { throw RPCError.beingRead }
        fetch.steps?.read = (call, params.maxBytes)
    }

    private func read(
        _ name: String, _ transfer: TransferID, _ maxBytes: Int, _ call: Call<FetchRead>
    ) {
        bodies[call.connection]?.setBeingRead(true, name)
        transfers.read(transfer, maxBytes: maxBytes, completion: reference.callback { $0.hasRead(name, $1, call) })
    }

    private func hasRead(
        _ name: String, _ result: Result<BodyPart, TransferFailure>, _ call: Call<FetchRead>
    ) {
        let id = call.connection
        guard let connection = clients[id] else { return }
        bodies[id]?.setBeingRead(false, name)
        switch result {
        case .success(let part):
            let result = FetchReadResult(data: part.bytes, offsetBytes: part.offset, isAtEnd: part.isAtEnd)
            connection.complete(call, .success(result))
            clients.checkReplies(of: connection)
            // In the same turn, because the client may send its next request at once.
            if part.isAtEnd { bodyEnded(name, .success(part.offset + part.bytes.count), of: id) }
        case .failure where bodies[id]?[name] == nil:
            connection.complete(call, .failure(noBody(name)))
        case .failure(let failure):
            let failure = FetchFailure(failure)
            connection.complete(call, .failure(RPCError(failure.kind, failure.text, cause: failure.cause)))
        }
    }

    private func noBody(_ name: String) -> RPCError {
        RPCError(
            .unknownFetch,
            "no body for fetch \"\(name.shortened)\": it was read to its end or has timed out")
    }

    // MARK: Attached connections

    /// Registers a fetch begun with `fetch/start`, and returns its attach token.
    func begin(_ fetch: RunningFetch, of connection: ClientConnection) -> String {
        let token = RandomText.make128Bits()
        fetch.steps = FetchSteps(token: token)
        let sides: Set<FetchAttach.Side> = fetch.source == nil ? [.response] : [.response, .request]
        tokens[token] = StepReference(connection: connection.id, fetch: fetch.id, freeSides: sides)
        return token
    }

    /// `fetch/attach`: after the reply, the connection carries only the bytes of a body.
    func attach(_ params: FetchAttach, _ call: Call<FetchAttach>, from connection: ClientConnection) throws {
        guard let entry = tokens[params.token], let owner = clients[entry.connection],
            owner.admits(connection)
        else {
            throw RPCError(
                .unknownFetch, "unknown attach token: the fetch has ended, or its body is already attached")
        }
        guard connection.canDetach else {
            throw RPCError(
                .invalidRequest,
                "fetch/attach needs a separate connection without open calls or fetches; send nothing before its reply"
            )
        }
        guard entry.freeSides.contains(params.side) else {
            throw RPCError(
                .unknownFetch,
                "the \(params.side.rawValue) body of this fetch is already attached, or there is none")
        }
        switch params.side {
        case .response:
            let steps = fetches[entry.fetch]?.steps
            let isBeingRead = bodies[owner.id]?[entry.fetch.description]?.isBeingRead ?? false
            guard steps?.socket == nil, steps?.read == nil, !isBeingRead else {
                throw RPCError(.busy, "the body is already being read")
            }
        case .request:
            guard (fetches[entry.fetch]?.source ?? bodies[owner.id]?[entry.fetch.description]?.source) != nil
            else {
                throw RPCError(.unknownFetch, "the request body of this fetch was already sent")
            }
        }
        tokens[params.token]?.freeSides.remove(params.side)
        let id = owner.id
        connection.detach(call.id, to: reference.callback { $0.attached($1, params.side, entry.fetch, of: id) })
    }

    private func attached(_ socket: Int32, _ side: FetchAttach.Side, _ id: FetchID, of owner: ConnectionID) {
        let (fetch, entry) = (fetches[id], bodies[owner]?[id.description])
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

    // MARK: Request bodies

    func makeStream(_ body: AttachedBody, storesCopy: Bool, for connection: ClientConnection) -> RequestStream {
        let quotas = connection.quotas
        let source = transfers.makeSource(
            size: body.sizeBytes, storesCopy: storesCopy, memory: quotas.requests, disk: quotas.disk)
        return RequestStream(source: source, size: body.sizeBytes)
    }

    /// Returns the request body that a client has resent for a retry. Its bytes are charged to the quota; an attached
    /// body becomes the source of the fetch.
    /// - Throws: `busy` if the quota for request data is exceeded.
    func take(
        _ body: ResentBody, for fetch: RunningFetch, of connection: ClientConnection
    ) throws(FetchFailure) -> RequestBody {
        switch body {
        case .bytes(let bytes):
            if let shortage = connection.quotas.requests.shortage(for: bytes.count) {
                throw FetchFailure(.busy, shortage.requestText)
            }
            fetch.usage?.grow(by: bytes.count)
            return .bytes(bytes)
        case .attached(let attached):
            let stream = makeStream(attached, storesCopy: false, for: connection)
            fetch.source = stream.source
            if let token = fetch.steps?.token { tokens[token]?.freeSides.insert(.request) }
            return .stream(stream)
        }
    }

    func dropOpenBody(of fetch: RunningFetch) {
        if let body = fetch.openBody { transfers.cancel(body.transfer) }
        fetch.openBody = nil
    }

    func releaseSource(of fetch: RunningFetch) {
        if let source = fetch.source { transfers.release(source) }
        fetch.source = nil
    }

    /// Invalidates the attach token of a body, and releases its request body.
    private func release(_ entry: OpenBodies.Entry) {
        if let token = entry.token { tokens[token] = nil }
        if let source = entry.source { transfers.release(source) }
    }

    /// Cancels all bodies of a closed connection.
    func forget(_ connection: ClientConnection) {
        for body in bodies.removeValue(forKey: connection.id)?.all ?? [] {
            transfers.cancel(body.transfer)
            release(body)
        }
    }

    /// Ends a fetch begun with `fetch/start` that got no response. No effect for other fetches.
    /// - Parameter connection: the client to notify; `nil` if its connection is closed.
    func endSteps(of fetch: RunningFetch, _ failure: FetchFailure, _ connection: ClientConnection?) {
        guard let steps = fetch.steps else { return }
        tokens[steps.token] = nil
        if let socket = steps.socket { Glibc.close(socket) }
        guard let connection else { return }
        let name = fetch.id.description
        let error = RPCError(failure.kind, failure.text, cause: failure.cause, fetchID: name)
        if let read = steps.read { connection.complete(read.call, .failure(error)) }
        notifyFailure(failure, of: name, to: connection)
        connection.closeIfDone()
    }

    /// Cancels all open bodies of a client. `fetch/completed` is still sent for those begun with `fetch/start`.
    func cancelAll(of connection: ClientConnection) {
        let failure = TransferFailure(.cancelled, "the broker is shutting down")
        for name in names(of: connection) {
            _ = drop(name, of: connection)
            bodyEnded(name, .failure(failure), of: connection.id)
        }
    }

    /// Cancels the open body of the fetch with the ID `name`, and returns whether there was one.
    func drop(_ name: String, of connection: ClientConnection) -> Bool {
        guard let entry = bodies[connection.id]?[name] else { return false }
        transfers.cancel(entry.transfer)
        return true
    }
}

extension RPCError {
    fileprivate static let beingRead = RPCError(
        .busy, "the body is already being read; wait for that reply")
}

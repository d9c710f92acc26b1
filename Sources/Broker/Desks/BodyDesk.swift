internal import Glibc
internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// The desk of bodies that are taken in steps, or through a connection of their own. It owns the response bodies that wait for a
/// reader, and the tokens with which a second connection attaches a body.
final class BodyDesk {
    private let transfers: any TransferPort
    private let clients: ClientRegistry
    private unowned let fetches: FetchRouter
    private let way: WayBack<BodyDesk>
    private var bodies: [ConnectionID: OpenBodies] = [:]
    /// Fetches in steps, by attach token.
    private var tokens: [String: StepReference] = [:]

    init(_ fetches: FetchRouter, _ way: WayBack<BodyDesk>) {
        (transfers, clients, self.fetches, self.way) = (fetches.ports.transfers, fetches.clients, fetches, way)
    }

    /// Whether some wait for their readers.
    var isBusy: Bool { bodies.values.contains { $0.count > 0 } }

    func names(of connection: ClientConnection) -> [String] { bodies[connection.id]?.fetchIDs ?? [] }

    func transfer(of id: FetchID, _ connection: ConnectionID) -> TransferID? {
        bodies[connection]?[id.description]?.transfer
    }

    /// The body of a fetch whose response is there: what of it has come, and what is still on its way.
    func open(
        _ fetched: FetchResponse, _ fetch: RunningFetch, _ result: FetchRunResult, for connection: ClientConnection
    ) {
        let response = fetched.response
        let (name, steps) = (fetch.id.description, fetch.steps)
        let transfer = response.openBody?.transfer ?? transfers.open(response.body)
        bodies[connection.id, default: OpenBodies(connection.holdings.bodies)].add(
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

    private func bodyEnded(_ name: String, _ delivery: TransferPort.Delivery, of id: ConnectionID) {
        guard let connection = clients[id], let entry = bodies[id]?.remove(name) else { return }
        release(entry)
        fetches.perform(fetches.change { $0.noteEnd(of: entry.proofs) })
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

    private func notifyFailure(_ failure: FetchFailure, of name: String, to connection: ClientConnection) {
        let error = RPCError(failure.kind, failure.text, cause: failure.cause, fetchID: name)
        connection.notify(.fetchCompleted, ["fetchId": .string(name), "error": error.json])
    }

    // MARK: Reading

    func read(_ params: FetchReadParams, _ call: CallID, of connection: ClientConnection) throws {
        if let entry = bodies[connection.id]?[params.fetchID] {
            guard !entry.isBeingRead else { throw RPCError.beingRead }
            return read(params.fetchID, entry.transfer, params.maxBytes, call, of: connection)
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
        _ name: String, _ transfer: TransferID, _ maxBytes: Int, _ call: CallID,
        of connection: ClientConnection
    ) {
        let id = connection.id
        bodies[id]?.setBeingRead(true, name)
        transfers.read(transfer, maxBytes: maxBytes, completion: way.callback { $0.hasRead(name, $1, call, of: id) })
    }

    private func hasRead(
        _ name: String, _ result: Result<BodyPart, TransferFailure>, _ call: CallID,
        of id: ConnectionID
    ) {
        guard let connection = clients[id] else { return }
        bodies[id]?.setBeingRead(false, name)
        switch result {
        case .success(let part):
            let result = FetchReadResult(data: part.bytes, offsetBytes: part.offset, isAtEnd: part.isAtEnd)
            connection.complete(call, .success(result.json))
            clients.checkReplies(of: connection)
            // Not a moment later: the client may ask for more at once.
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
            "No body is held for the fetch \"\(name.shortened)\": it was read to its end, or waited too long.")
    }

    // MARK: A connection of its own

    /// A fetch in steps begins. Returns the token that names it.
    func begin(_ fetch: RunningFetch, of connection: ClientConnection) -> String {
        let token = RandomText.make128Bits()
        fetch.steps = FetchSteps(token: token)
        let sides: Set<FetchAttachParams.Side> = fetch.source == nil ? [.response] : [.response, .request]
        tokens[token] = StepReference(connection: connection.id, fetch: fetch.id, freeSides: sides)
        return token
    }

    /// From the reply on the connection carries bytes of a body, and nothing else.
    func attach(_ params: FetchAttachParams, _ call: CallID, from connection: ClientConnection) throws {
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
            let isBeingRead = bodies[owner.id]?[reference.fetch.description]?.isBeingRead ?? false
            guard steps?.socket == nil, steps?.read == nil, !isBeingRead else {
                throw RPCError(.busy, "Somebody reads the body of this fetch already.")
            }
        case .request:
            guard (fetches[reference.fetch]?.source ?? bodies[owner.id]?[reference.fetch.description]?.source) != nil
            else {
                throw RPCError(.unknownFetch, "The request of this fetch has been sent already.")
            }
        }
        tokens[params.token]?.freeSides.remove(params.side)
        let id = owner.id
        connection.handOver(call, to: way.callback { $0.attached($1, params.side, reference.fetch, of: id) })
    }

    private func attached(_ socket: Int32, _ side: FetchAttachParams.Side, _ id: FetchID, of owner: ConnectionID) {
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

    // MARK: The body of a request

    func makeStream(_ body: AttachedBody, keepsCopy: Bool, for connection: ClientConnection) -> RequestStream {
        let holdings = connection.holdings
        let source = transfers.makeSource(
            size: body.sizeBytes, keepsCopy: keepsCopy, memory: holdings.requests, disk: holdings.disk)
        return RequestStream(source: source, size: body.sizeBytes)
    }

    /// What a client has given for its request, as it is sent.
    func take(
        _ body: NeededBody, for fetch: RunningFetch, of connection: ClientConnection
    ) throws(FetchFailure) -> RequestBody {
        switch body {
        case .bytes(let bytes):
            if let shortage = connection.holdings.requests.shortage(for: bytes.count) {
                throw FetchFailure(.busy, shortage.requestText)
            }
            fetch.heldBytes += bytes.count
            fetch.holding?.grow(by: bytes.count)
            return .bytes(bytes)
        case .attached(let attached):
            let stream = makeStream(attached, keepsCopy: false, for: connection)
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

    /// Nobody attaches anything to it any more.
    private func release(_ entry: OpenBodies.Entry) {
        if let token = entry.token { tokens[token] = nil }
        if let source = entry.source { transfers.release(source) }
    }

    /// The connection has ended.
    func forget(_ connection: ClientConnection) {
        for body in bodies.removeValue(forKey: connection.id)?.all ?? [] {
            transfers.cancel(body.transfer)
            release(body)
        }
    }

    /// The fetch has ended without a response.
    /// - Parameter connection: `nil` where nobody is there any more to be told.
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

    /// What was begun in steps has its `fetch/completed`.
    func cancelAll(of connection: ClientConnection) {
        let failure = TransferFailure(.cancelled, "the broker is closing")
        for name in names(of: connection) {
            _ = drop(name, of: connection)
            bodyEnded(name, .failure(failure), of: connection.id)
        }
    }

    /// Returns whether there was one.
    func drop(_ name: String, of connection: ClientConnection) -> Bool {
        guard let entry = bodies[connection.id]?[name] else { return false }
        transfers.cancel(entry.transfer)
        return true
    }
}

extension RPCError {
    fileprivate static let beingRead = RPCError(
        .busy, "Somebody reads the body of this fetch already. Wait for that reply.")
}

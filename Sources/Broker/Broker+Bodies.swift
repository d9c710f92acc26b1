internal import Glibc
internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// Bodies that are taken in steps, or through a connection of their own.
extension Broker {
    /// The body of a fetch whose response is there: what of it has come, and what is still on its way.
    func openBody(
        of response: TransferResponse, _ name: String, _ steps: FetchSteps?, _ result: FetchRunResult,
        for connection: ClientConnection
    ) {
        let transfer = response.openBody?.transfer ?? transfers.open(response.body)
        connection.bodies.add(
            OpenBodies.Entry(transfer: transfer, result: steps == nil ? nil : result, token: steps?.token), for: name)
        let id = connection.id
        transfers.follow(transfer) { [self, loop] delivery in
            loop.post { self.assumeIsolated { $0.bodyEnded(name, delivery, of: id) } }
        }
        if let socket = steps?.socket { transfers.attach(transfer, socket: socket) }
        if let read = steps?.read { self.read(transfer, read.maxBytes, read.call, of: connection) }
    }

    private func bodyEnded(_ name: String, _ delivery: TransferPort.Delivery, of id: ConnectionID) {
        guard let connection = connections[id], let entry = connection.bodies.remove(name) else { return }
        if let token = entry.token { tokens[token] = nil }
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
        let error = RPCError(failure.kind, failure.text, fetchID: name)
        connection.notify(.fetchCompleted, ["fetchId": .string(name), "error": error.json])
    }

    // MARK: Reading

    func read(_ params: FetchReadParams, _ call: ConnectionMachine.CallID, of connection: ClientConnection) throws {
        if let entry = connection.bodies[params.fetchID] {
            return read(entry.transfer, params.maxBytes, call, of: connection)
        }
        guard let id = FetchID(params.fetchID), connection.fetches.contains(id), let fetch = fetches[id],
            fetch.steps != nil
        else {
            throw RPCError(
                .unknownFetch,
                "No body is held for the fetch \"\(params.fetchID.shortened)\": it was read to its end, or waited too long."
            )
        }
        guard fetch.steps?.read == nil, fetch.steps?.socket == nil else {
            throw RPCError(.busy, "Somebody reads the body of this fetch already. Wait for that reply.")
        }
        fetch.steps?.read = (call, params.maxBytes)
    }

    private func read(
        _ transfer: TransferID, _ maxBytes: Int, _ call: ConnectionMachine.CallID, of connection: ClientConnection
    ) {
        let id = connection.id
        transfers.read(transfer, maxBytes: maxBytes) { [self, loop] result in
            loop.post { self.assumeIsolated { $0.hasRead(result, call, of: id) } }
        }
    }

    private func hasRead(
        _ result: Result<BodyPart, TransferFailure>, _ call: ConnectionMachine.CallID, of id: ConnectionID
    ) {
        guard let connection = connections[id] else { return }
        switch result {
        case .success(let part):
            let result = FetchReadResult(data: part.bytes, offsetBytes: part.offset, isAtEnd: part.isAtEnd)
            connection.complete(call, .success(result.json))
        case .failure(let failure):
            let failure = FetchFailure(failure)
            connection.complete(call, .failure(RPCError(failure.kind, failure.text)))
        }
    }

    // MARK: A connection of its own

    /// From the reply on the connection carries bytes of a body, and nothing else.
    func attach(
        _ params: FetchAttachParams, _ call: ConnectionMachine.CallID, from connection: ClientConnection
    ) throws {
        guard let reference = tokens[params.token], let owner = connections[reference.connection],
            owner.peer.uid == connection.peer.uid
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
        let name = reference.fetch.description
        if let fetch = fetches[reference.fetch] {
            guard fetch.steps?.socket == nil, fetch.steps?.read == nil else {
                throw RPCError(.busy, "Somebody reads the body of this fetch already.")
            }
        }
        tokens[params.token] = nil
        let id = owner.id
        connection.handOver(call) { [self, loop] socket in
            loop.post { self.assumeIsolated { $0.attached(socket, name, reference.fetch, of: id) } }
        }
    }

    private func attached(_ socket: Int32, _ name: String, _ fetch: FetchID, of id: ConnectionID) {
        if let entry = connections[id]?.bodies[name] { return transfers.attach(entry.transfer, socket: socket) }
        if let fetch = fetches[fetch], fetch.steps != nil {
            fetch.steps?.socket = socket
        } else {
            Glibc.close(socket)
        }
    }

    func dropBody(_ name: String, of connection: ClientConnection) -> Bool {
        guard let entry = connection.bodies[name] else { return false }
        transfers.cancel(entry.transfer)
        return true
    }
}

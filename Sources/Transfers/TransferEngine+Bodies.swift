internal import CCurl
public import WatchwordCore

/// Bodies that are handed over while they come.
extension TransferEngine {
    public nonisolated func follow(_ id: TransferID, completion: @escaping @Sendable (Delivery) -> Void) {
        let isTaken = post { engine in
            guard let flow = engine.flows[id] else { return completion(.failure(.noBody)) }
            flow.follow(completion)
        }
        if !isTaken { Task.detached { completion(.failure(.shutDown)) } }
    }

    public nonisolated func read(
        _ id: TransferID, maxBytes: Int, completion: @escaping @Sendable (Result<BodyPart, TransferFailure>) -> Void
    ) {
        let isTaken = post { engine in
            guard let flow = engine.flows[id] else { return completion(.failure(.noBody)) }
            flow.read((maxBytes, completion))
        }
        if !isTaken { Task.detached { completion(.failure(.shutDown)) } }
    }

    public nonisolated func attach(_ id: TransferID, socket: Int32) {
        let isTaken = post { engine in
            let socket = BodySocket(owning: socket)
            engine.flows[id]?.attach(socket)
        }
        if !isTaken { _ = BodySocket(owning: socket) }
    }

    public nonisolated func open(_ body: [UInt8]) -> TransferID {
        let id = nextID()
        _ = post { engine in
            let flow = BodyFlow(start: body)
            flow.end(.success(()))
            engine.flows.add(flow, id)
        }
        return id
    }

    public nonisolated func progress(of id: TransferID, completion: @escaping @Sendable (TransferProgress?) -> Void) {
        let isTaken = post { completion($0.transfers[id]?.progress) }
        if !isTaken { Task.detached { completion(nil) } }
    }

    // MARK: On the engine's thread

    /// The responses whose bodies have begun to come.
    func handOverResponses() {
        let ready = handOver.transfers
        guard !ready.isEmpty else { return }
        handOver.transfers = []
        for transfer in ready {
            guard transfers[transfer.id] != nil, let flow = transfer.flow else { continue }
            switch transfer.outcome(CURLE_OK) {
            case .failure(let failure):
                end(transfer.id, .failure(failure))
            case .success(var response):
                response.openBody = OpenBody(transfer: transfer.id, announcedBytes: transfer.announcedBytes)
                flows.add(flow, transfer.id)
                transfer.isHandedOver = true
                transfer.completion(.success(response))
            }
        }
    }

    /// Lets those go on for whom there is room again, and ends what nobody reads.
    func serveFlows() {
        if flows.isEmpty { return }
        for (id, flow) in flows.resumable {
            guard let transfer = transfers[id] else { continue }
            flow.isPaused = false
            let code = transfer.easy.resume()
            if code != CURLE_OK { end(id, transfer.outcome(code)) }
        }
        for (id, failure) in flows.removeEnded() { end(id, .failure(failure)) }
    }
}

extension TransferFailure {
    fileprivate static let noBody = TransferFailure(
        .internalError, "There is no such body: it was read to its end, or nobody has read it for too long.")
}

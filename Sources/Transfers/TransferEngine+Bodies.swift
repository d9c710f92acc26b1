internal import CCurl
internal import EventLoop
public import WatchwordCore

/// Bodies that are handed over while they come.
extension TransferEngine {
    public func follow(_ id: TransferID, completion: @escaping @Sendable (Delivery) -> Void) {
        if let elsewhere = tokens.thread(of: id) {
            let ended: @Sendable (Delivery) -> Void = { delivery in
                self.tokens.ended(id)
                completion(delivery)
            }
            return elsewhere.post(back: loop, ended) { $0.follow(id, completion: $1) }
        }
        guard let flow = flows[id] else { return completion(.failure(.noBody)) }
        flow.follow(completion)
    }

    public func read(
        _ id: TransferID, maxBytes: Int, completion: @escaping @Sendable (Result<BodyPart, TransferFailure>) -> Void
    ) {
        if let elsewhere = tokens.thread(of: id) {
            return elsewhere.post(back: loop, completion) { $0.read(id, maxBytes: maxBytes, completion: $1) }
        }
        guard let flow = flows[id] else { return completion(.failure(.noBody)) }
        flow.read((maxBytes, completion))
    }

    public func attach(_ id: TransferID, socket: Int32) {
        if let elsewhere = tokens.thread(of: id) {
            elsewhere.post { $0.attach(id, socket: socket) }
            return
        }
        let socket = BodySocket(owning: socket)
        flows[id]?.attach(socket)
    }

    public func open(_ body: [UInt8]) -> TransferID {
        let id = TransferID.next()
        let flow = BodyFlow(start: body)
        flow.end(.success(()))
        flows.add(flow, id)
        return id
    }

    public func makeSource(
        size: Int?, keepsCopy: Bool, memory: Allowance?, disk: Allowance?
    ) -> BodySourceID {
        let id = BodySourceID(value: TransferID.next().value)
        let source = BodySource(size: size, keepsCopy: keepsCopy, memory: memory, disk: disk)
        sources[id] = SourceSlot(source, on: self)
        return id
    }

    public func attach(_ source: BodySourceID, socket: Int32) {
        if tokens.has(source) { return tokens.post { $0.attach(source, socket: socket) } }
        let socket = BodySocket(owning: socket)
        guard let slot = sources[source] else { return }
        slot.source.attach(socket)
        slot.resume()
    }

    public func release(_ source: BodySourceID) {
        if tokens.release(source) { return }
        sources.removeValue(forKey: source)?.close()
    }

    public func progress(of id: TransferID, completion: @escaping @Sendable (TransferProgress?) -> Void) {
        if let elsewhere = tokens.thread(of: id) {
            return elsewhere.post(back: loop, completion) { $0.progress(of: id, completion: $1) }
        }
        completion(transfers[id]?.progress)
    }

    // MARK: In between

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
                transfer.pool?.multi.hold(1)
                settle(transfer.completion, .success(response))
            }
        }
    }

    func source(of request: TransferRequest) throws(TransferFailure) -> SourceSlot? {
        guard case .stream(let stream)? = request.body else { return nil }
        guard let slot = sources[stream.source] else {
            throw TransferFailure(.internalError, "The request's body is not there any more.")
        }
        return slot
    }

    func serveSources() {
        for slot in sources.values where slot.source.isPaused { slot.serve() }
    }
}

extension TransferFailure {
    fileprivate static let noBody = TransferFailure(
        .internalError, "There is no such body: it was read to its end, or nobody has read it for too long.")
}

internal import CCurl
internal import EventLoop
internal import WatchwordCore
internal import WatchwordProtocol

/// Bodies that are delivered while they are received.
extension TransferEngine {
    func follow(_ id: TransferID, completion: @escaping @Sendable (Delivery) -> Void) {
        if let elsewhere = tokens.thread(of: id) {
            let ended: @Sendable (Delivery) -> Void = { [port] delivery in
                port.value.tokens.ended(id)
                completion(delivery)
            }
            return elsewhere.post(back: loop, ended) { $0.follow(id, completion: $1) }
        }
        guard let flow = flows[id] else { return completion(.failure(.noBody)) }
        flow.follow(completion)
    }

    func read(
        _ id: TransferID, maxBytes: Int, completion: @escaping @Sendable (Result<BodyPart, TransferFailure>) -> Void
    ) {
        if let elsewhere = tokens.thread(of: id) {
            return elsewhere.post(back: loop, completion) { $0.read(id, maxBytes: maxBytes, completion: $1) }
        }
        guard let flow = flows[id] else { return completion(.failure(.noBody)) }
        flow.read((maxBytes, completion))
    }

    func attach(_ id: TransferID, socket: Int32) {
        if let elsewhere = tokens.thread(of: id) {
            elsewhere.post { $0.attach(id, socket: socket) }
            return
        }
        let socket = BodySocket(owning: socket)
        flows[id]?.attach(socket)
    }

    func open(_ body: [UInt8]) -> TransferID {
        let id = TransferID.next()
        let flow = BodyFlow(start: body)
        flow.end(.success(()))
        flows.add(flow, id)
        return id
    }

    func makeSource(
        size: Int?, storesCopy: Bool, memory: Quota?, disk: Quota?
    ) -> BodySourceID {
        let id = BodySourceID(value: TransferID.next().value)
        let source = BodySource(size: size, storesCopy: storesCopy, memory: memory, disk: disk)
        sources[id] = SourceSlot(source, on: self)
        return id
    }

    func attach(_ source: BodySourceID, socket: Int32) {
        if tokens.has(source) { return tokens.post { $0.attach(source, socket: socket) } }
        let socket = BodySocket(owning: socket)
        guard let slot = sources[source] else { return }
        slot.source.attach(socket)
        slot.resume()
    }

    func release(_ source: BodySourceID) {
        if tokens.release(source) { return }
        sources.removeValue(forKey: source)?.close()
    }

    func progress(of id: TransferID, completion: @escaping @Sendable (TransferProgress?) -> Void) {
        if let elsewhere = tokens.thread(of: id) {
            return elsewhere.post(back: loop, completion) { $0.progress(of: id, completion: $1) }
        }
        completion(running[id]?.progress)
    }

    // MARK: Helpers

    func deliverReadyResponses() {
        for transfer in running.takeReadyResponses() {
            guard running[transfer.id] != nil, let flow = transfer.body.flow else { continue }
            switch transfer.outcome(CURLE_OK) {
            case .failure(let failure):
                end(transfer.id, .failure(failure))
            case .success(var response):
                response.openBody = OpenBody(transfer: transfer.id, announcedBytes: transfer.announcedBytes)
                flows.add(flow, transfer.id)
                transfer.body.isDelivered = true
                transfer.pool?.multi.hold(1)
                settle(transfer.job.completion, .success(response))
            }
        }
    }

    /// Delivers the responses whose body was awaited and has begun to arrive. The others are delivered after a while.
    func awaitBodies() {
        let awaited = running.awaited()
        guard !awaited.isEmpty else { return }
        for transfer in awaited {
            if transfer.body.count > 0, !transfer.isSmall {
                transfer.startFlow()
            } else if transfer.waiting == nil {
                transfer.waiting = LoopTimer(on: loop) { [unowned self, unowned transfer] in
                    transfer.startFlow()
                    deliverReadyResponses()
                }
                transfer.waiting?.set(in: EngineLimits.awaitedBodyTime)
            }
        }
        deliverReadyResponses()
    }

    func source(of request: SharedRequest) throws(TransferFailure) -> SourceSlot? {
        guard case .stream(let stream)? = request.body else { return nil }
        guard let slot = sources[stream.source] else {
            throw TransferFailure(.internalError, "the request's body no longer exists")
        }
        return slot
    }

    func serveSources() {
        for slot in sources.values where slot.source.isPaused { slot.serve() }
    }
}

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

    public nonisolated func makeSource(size: Int?, keepsCopy: Bool, disk: Allowance?) -> BodySourceID {
        let id = BodySourceID(value: nextID().value)
        _ = post { $0.sources[id] = BodySource(size: size, keepsCopy: keepsCopy, disk: disk) }
        return id
    }

    public nonisolated func attach(_ source: BodySourceID, socket: Int32) {
        let isTaken = post { engine in
            engine.sources[source]?.attach(BodySocket(owning: socket)) ?? { _ = BodySocket(owning: socket) }()
            engine.resumeSource(source)
        }
        if !isTaken { _ = BodySocket(owning: socket) }
    }

    public nonisolated func release(_ source: BodySourceID) {
        _ = post { $0.sources[source] = nil }
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
                multi(of: transfer).hold(1)
                transfer.completion(.success(response))
            }
        }
    }

    func source(of request: TransferRequest) throws(TransferFailure) -> BodySource? {
        guard case .stream(let stream)? = request.body else { return nil }
        guard let source = sources[stream.source] else {
            throw TransferFailure(.internalError, "The request's body is not there any more.")
        }
        return source
    }

    static func input(of descriptor: Int32) -> curl_waitfd {
        curl_waitfd(fd: descriptor, events: CShort(CURL_WAIT_POLLIN), revents: 0)
    }

    /// Lets transfers go on whose request's body has more to give, and ends those that wait in vain.
    func serveSources(ready: Set<Int32>, at now: ContinuousClock.Instant) {
        for (id, source) in sources where source.isPaused {
            if source.watched.map(ready.contains) == true { resumeSource(id) }
            guard source.isPaused, let deadline = source.deadline, deadline <= now else { continue }
            source.isPaused = false
            if let transfer = user(of: source) { end(transfer.id, .failure(.noMoreBody)) }
        }
    }

    /// libcurl sends nothing more to who has refused, but goes on waiting for a body that it was told to wait for.
    func resumeRefused() {
        for (id, source) in sources where source.isPaused && user(of: source)?.isRefused == true { resumeSource(id) }
    }

    private func user(of source: BodySource) -> Transfer? { transfers.values.first { $0.source === source } }

    private func resumeSource(_ id: BodySourceID) {
        guard let source = sources[id], source.isPaused, let transfer = user(of: source) else { return }
        source.isPaused = false
        let code = transfer.easy.resume()
        if code != CURLE_OK { end(transfer.id, transfer.outcome(code)) }
    }

    /// Lets those go on whose time has come.
    func resumePaced(at now: ContinuousClock.Instant) {
        for id in pacedTransfers {
            guard let transfer = transfers[id], let end = transfer.pausedUntil, end <= now else { continue }
            transfer.pausedUntil = nil
            let code = transfer.easy.resume()
            if code != CURLE_OK { self.end(id, transfer.outcome(code)) }
        }
    }

    /// Lets those go on for whom there is room again, and ends what nobody reads.
    func serveFlows() {
        if flows.isEmpty { return }
        flows.feed()
        flows.flush()
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
    fileprivate static let noMoreBody = TransferFailure(
        .requestBodyIncomplete,
        "Nothing has come of the request's body for \(EngineLimits.readerIdleSeconds) seconds.")
    fileprivate static let noBody = TransferFailure(
        .internalError, "There is no such body: it was read to its end, or nobody has read it for too long.")
}

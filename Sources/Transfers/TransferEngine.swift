internal import CCurl
internal import Synchronization
public import WatchwordCore

/// Makes exchanges with libcurl: one thread, and one connection cache for each identity. Within one cache every transfer may
/// get the connection of any other.
public actor TransferEngine: TransferPort {
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    private let thread: EngineThread
    private let multi: MultiHandle
    private let caFile: String?
    private let lastID = Atomic(0)
    var transfers: [TransferID: Transfer] = [:]
    let handOver = HandOverList()
    var flows = FlowTable()
    var sources: [BodySourceID: BodySource] = [:]
    /// Those that may not go as fast as they can.
    var pacedTransfers: Set<TransferID> = []
    private var pools: PoolTable
    private var preparations: PreparationTable
    private var quiet = QuietTime()
    private var isClosed = false
    private let hasShutDown = Mutex(false)
    private let counts = Mutex(
        TransferFigures(
            engine: TransferLibrary.version, running: 0, finished: 0, connectionsOpened: 0, connectionsReused: 0))

    /// Starts the engine's thread; `shutDown` ends it.
    /// - Parameter caFile: certificates, in PEM, to be trusted in place of the system's.
    /// - Parameter tokenModule: the PKCS#11 module through which tokens are used; `nil` for that of p11-kit.
    /// - Throws: `TransferFailure` when libcurl cannot start.
    public init(caFile: String? = nil, tokenModule: String? = nil) throws(TransferFailure) {
        try self.init(
            caFile: caFile, tokenModule: tokenModule, identityIdleTime: .seconds(EngineLimits.identityIdleSeconds))
    }

    /// - Parameters:
    ///   - identityIdleTime: after which the connections of an identity are closed.
    ///   - loginIdleTime: the same for connections that hold the password of their login.
    init(
        caFile: String?, tokenModule: String? = nil,
        identityIdleTime: Duration = .seconds(EngineLimits.identityIdleSeconds),
        loginIdleTime: Duration = .seconds(EngineLimits.loginIdleSeconds)
    ) throws(TransferFailure) {
        try TransferLibrary.initialize()
        let multi = try MultiHandle()
        self.multi = multi
        self.caFile = caFile
        pools = PoolTable(idleTime: identityIdleTime, loginIdleTime: loginIdleTime)
        preparations = PreparationTable(tokenModule: tokenModule)
        let thread = try EngineThread()
        self.thread = thread
        thread.start(
            turn: { [weak self] in self?.assumeIsolated { $0.turn() } },
            sleep: { [weak self] in
                if let self { return self.assumeIsolated { $0.sleep() } }
                multi.sleep(thread.alarm, milliseconds: EngineLimits.pollMilliseconds)
            })
    }

    public nonisolated func expectTransfer() { thread.wake() }

    public nonisolated func start(
        _ request: TransferRequest, completion: @escaping @Sendable (Outcome) -> Void
    ) -> TransferID {
        let id = nextID()
        let isTaken = post { $0.begin(id, request, completion) }
        if !isTaken { Task.detached { completion(.failure(.shutDown)) } }
        return id
    }

    public nonisolated func cancel(_ id: TransferID) {
        _ = post { engine in
            engine.flows[id]?.giveUp(.cancelled)
            engine.end(id, .failure(.cancelled))
        }
    }

    public nonisolated func forget(_ identity: ConnectionIdentity) {
        _ = post { $0.pools.forget(identity) }
    }

    public nonisolated var figures: TransferFigures { counts.withLock { $0 } }

    /// Ends all transfers with `.cancelled`, closes all connections, and returns when the thread is gone. Further transfers
    /// end in the same way. More calls do nothing.
    public nonisolated func shutDown() {
        let isFirst = hasShutDown.withLock { hasShutDown in
            defer { hasShutDown = true }
            return !hasShutDown
        }
        guard isFirst else { return }
        _ = post { $0.endTransfers() }
        thread.stop()
        multi.close()
    }

    nonisolated func nextID() -> TransferID { TransferID(value: lastID.add(1, ordering: .relaxed).newValue) }

    /// `false` when the thread has ended: then `call` never runs.
    nonisolated func post(_ call: @escaping @Sendable (isolated TransferEngine) -> Void) -> Bool {
        thread.post { self.assumeIsolated { call($0) } }
    }

    // MARK: On the engine's thread

    private func begin(_ id: TransferID, _ request: TransferRequest, _ completion: @escaping Transfer.Completion) {
        guard !isClosed else { return completion(.failure(.shutDown)) }
        guard request.needsPreparation else { return begin(id, request, Prepared(), completion) }
        do throws(TransferFailure) {
            try request.checkCombination()
            try preparations.add(id, request, completion) { result in
                _ = self.post { $0.begin(id, prepared: result, request.identity) }
            }
            counts.withLock { $0.running += 1 }
        } catch {
            completion(.failure(error))
        }
    }

    private func begin(
        _ id: TransferID, prepared: Result<Prepared, TransferFailure>, _ identity: ConnectionIdentity
    ) {
        preparations.finish(identity)
        guard let waiting = endWaiting(id) else { return }
        switch prepared {
        case .success(let prepared):
            var request = waiting.request
            request.timeout = max(.milliseconds(1), waiting.deadline - .now)
            begin(id, request, prepared, waiting.completion)
        case .failure(let failure): waiting.completion(.failure(failure))
        }
    }

    /// It counts as running while it waits.
    private func endWaiting(_ id: TransferID) -> PreparationTable.Waiting? {
        guard let waiting = preparations.remove(id) else { return nil }
        counts.withLock { $0.running -= 1 }
        return waiting
    }

    private func begin(
        _ id: TransferID, _ request: TransferRequest, _ prepared: Prepared, _ completion: @escaping Transfer.Completion
    ) {
        do throws(TransferFailure) {
            let transfer = try Transfer(
                id: id, request, prepared, source: try source(of: request), caFile: caFile, handOver: handOver,
                completion: completion)
            do throws(TransferFailure) { try add(transfer) } catch {
                transfer.close()
                throw error
            }
            transfers[id] = transfer
            if request.maxBytesPerSecond != nil { pacedTransfers.insert(id) }
            counts.withLock { $0.running += 1 }
        } catch {
            completion(.failure(error))
        }
    }

    private func add(_ transfer: Transfer) throws(TransferFailure) {
        let request = transfer.request
        let isStreamed = request.delivery == .fromHeader
        if request.identity == .none && !isStreamed { return try multi.add(transfer.easy) }
        let pool =
            try request.identity == .none
            ? pools.streamPool(for: request) : pools.pool(for: request, certificate: transfer.certificate?.content)
        try pool.add(transfer)
        transfer.pool = pool
    }

    /// One round of libcurl: moves bytes, and hands over what is complete.
    private func turn() {
        guard !isClosed else { return }
        multi.perform()
        pools.act()
        handOverResponses()
        resumeRefused()
        while let (easy, code) = multi.nextFinished() ?? pools.nextFinished() {
            let transfer = Transfer.at(easy.owner)
            let opened = easy.number(CURLINFO_NUM_CONNECTS)
            counts.withLock { counts in
                counts.connectionsOpened += opened
                if opened == 0 && code == CURLE_OK { counts.connectionsReused += 1 }
            }
            end(transfer.id, transfer.outcome(code))
        }
        serveFlows()
    }

    /// Waits for the next thing to happen.
    private func sleep() {
        let limit = transfers.isEmpty ? EngineLimits.pollMilliseconds : quiet.limit
        if pools.isEmpty && preparations.isEmpty && flows.isEmpty && sources.isEmpty && pacedTransfers.isEmpty {
            return quiet.slept(somethingHappened: multi.sleep(thread.alarm, milliseconds: limit))
        }
        let waiting = sources.values.filter(\.isPaused)
        var others = flows.descriptors + waiting.compactMap(\.watched).map { Self.input(of: $0) }
        let paces = pacedTransfers.map { transfers[$0]?.pausedUntil }
        let deadlines = [preparations.nextDeadline, flows.nextDeadline] + waiting.map(\.deadline) + paces
        let deadline = deadlines.compactMap { $0 }.min()
        quiet.slept(
            somethingHappened: pools.sleep(in: multi, thread.alarm, with: &others, until: deadline, limit: limit))
        let now = ContinuousClock.now
        flows.act(on: others)
        resumePaced(at: now)
        serveSources(ready: Set(others.filter { $0.revents != 0 }.map(\.fd)), at: now)
        flows.expire(at: now)
        pools.closeUnused(at: now)
        for id in preparations.expired(at: now) { end(id, .failure(.timedOut)) }
    }

    func end(_ id: TransferID, _ outcome: Outcome) {
        if let waiting = endWaiting(id) { return waiting.completion(outcome) }
        guard let transfer = transfers.removeValue(forKey: id) else { return }
        counts.withLock { counts in
            counts.running -= 1
            counts.finished += 1
        }
        if case .success = outcome, let store = transfer.store { flows.add(BodyFlow(start: []), from: store, id) }
        transfer.source?.isPaused = false
        pacedTransfers.remove(id)
        // Who waits does not wait for the tidying.
        if transfer.isHandedOver {
            transfer.flow?.end(outcome.map { _ in })
            multi(of: transfer).hold(-1)
        } else {
            transfer.completion(outcome)
        }
        if let pool = transfer.pool { pool.remove(transfer) } else { multi.remove(transfer.easy) }
        transfer.close()
        if transfer.ntlm.isUnfinished(after: outcome) { pools.forget(transfer.request.identity) }
        if !pools.isEmpty { pools.closeUnused(at: .now) }
    }

    func multi(of transfer: Transfer) -> MultiHandle { transfer.pool?.multi ?? multi }

    private func endTransfers() {
        isClosed = true
        for id in Array(transfers.keys) + preparations.ids { end(id, .failure(.shutDown)) }
        flows.giveUpAll(.shutDown)
        pools.closeAll()
    }
}

extension TransferFailure {
    fileprivate static let cancelled = TransferFailure(.cancelled, "The transfer was cancelled.")
    static let shutDown = TransferFailure(.cancelled, "The transfer engine is shut down.")
    fileprivate static let timedOut = TransferFailure(
        .timedOut, "What the login needs (a file, a token or a ticket) did not come in time.")
}

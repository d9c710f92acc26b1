internal import CCurl
public import EventLoop
internal import Synchronization
public import WatchwordCore

/// Makes exchanges with libcurl on an event loop, with one connection cache for each identity. Within one cache every transfer
/// may get the connection of any other.
///
/// What may take long (files, KDCs, the loading of tokens) has threads of its own: see `PreparationTable`. Transfers whose
/// handshakes are signed by a token have a loop of their own: see `TokenTransfers`.
///
/// `@unchecked Sendable`: used on the loop only.
public final class TransferEngine: TransferPort, @unchecked Sendable {
    typealias Completion = Transfer.Completion

    let loop: EventLoop
    private let template: EasyHandle
    var transfers: [TransferID: Transfer] = [:]
    let handOver = HandOverList()
    let flows: FlowTable
    var sources: [BodySourceID: SourceSlot] = [:]
    /// Those that may not go as fast as they can.
    private var pacedTransfers: Set<TransferID> = []
    private var pools: PoolTable
    private var preparations: PreparationTable
    private lazy var preparing = LoopTimer(on: loop) { [unowned self] in endLatePreparations() }
    /// Outcomes that nobody has been told yet: never before the call that has brought them about has returned.
    private var outcomes: [(completion: Completion, outcome: Outcome)] = []
    private var tellsOutcomes = false
    var tokens: TokenTransfers
    private var isClosed = false
    var counts = TransferFigures(
        engine: TransferLibrary.version, running: 0, finished: 0, connectionsOpened: 0, connectionsReused: 0)

    /// - Parameter caFile: certificates, in PEM, to be trusted in place of the system's.
    /// - Parameter tokenModule: the PKCS#11 module through which tokens are used; `nil` for that of p11-kit.
    /// - Throws: `TransferFailure` when libcurl cannot start.
    public convenience init(
        on loop: EventLoop, caFile: String? = nil, tokenModule: String? = nil
    ) throws(TransferFailure) {
        try self.init(on: loop, caFile: caFile, tokenModule: tokenModule, idle: IdleLimits())
    }

    init(
        on loop: EventLoop, caFile: String?, tokenModule: String? = nil, idle: IdleLimits, ownsTokens: Bool = false
    ) throws(TransferFailure) {
        try TransferLibrary.initialize()
        self.loop = loop
        template = try EasyHandle.template(caFile: caFile)
        let relay = Relay()
        pools = try PoolTable(on: loop, idle) { relay.engine?.acted($0) }
        flows = FlowTable(on: loop)
        preparations = PreparationTable(tokenModule: tokenModule)
        tokens = TokenTransfers(caFile: caFile, idle: idle, isHere: ownsTokens)
        relay.engine = self
        flows.engine = self
    }

    private final class Relay {
        weak var engine: TransferEngine?
    }

    public func start(_ request: TransferRequest, completion: @escaping @Sendable (Outcome) -> Void) -> TransferID {
        let id = TransferID.next()
        begin(id, request, completion)
        return id
    }

    public func cancel(_ id: TransferID) {
        if let elsewhere = tokens.thread(of: id) {
            elsewhere.post { $0.cancel(id) }
            // It may hang: whoever has waited does so no more.
            return endElsewhere(id, .failure(.cancelled))
        }
        flows[id]?.giveUp(.cancelled)
        end(id, .failure(.cancelled))
    }

    public func forget(_ identity: ConnectionIdentity) {
        tokens.post { $0.forget(identity) }
        pools.forget(identity)
        planClosing()
    }

    public var figures: TransferFigures { counts }

    /// Ends all transfers with `.cancelled`, and closes all connections. Further transfers end in the same way. More calls do
    /// nothing.
    public func shutDown() {
        guard !isClosed else { return }
        isClosed = true
        tokens.shutDown()
        for id in Array(transfers.keys) + preparations.ids { end(id, .failure(.shutDown)) }
        flows.giveUpAll(.shutDown)
        tellOutcomes()
        preparing.cancel()
        pools.closeAll()
        template.close()
    }

    // MARK: Beginning

    func begin(_ id: TransferID, _ request: TransferRequest, _ completion: @escaping Completion) {
        guard !isClosed else { return settle(completion, .failure(.shutDown)) }
        guard request.needsPreparation else { return begin(id, request, Prepared(), completion) }
        do throws(TransferFailure) {
            try request.checkCombination()
            try preparations.add(id, request, completion) { [loop] result in
                loop.post { self.begin(id, prepared: result, request.identity) }
            }
            preparing.set(preparations.nextDeadline)
            counts.running += 1
        } catch {
            settle(completion, .failure(error))
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
        case .failure(let failure): settle(waiting.completion, .failure(failure))
        }
    }

    /// It counts as running while it waits.
    private func endWaiting(_ id: TransferID) -> PreparationTable.Waiting? {
        guard let waiting = preparations.remove(id) else { return nil }
        counts.running -= 1
        return waiting
    }

    private func endLatePreparations() {
        for id in preparations.expired(at: loop.now) { end(id, .failure(.timedOut)) }
        preparing.set(preparations.nextDeadline)
    }

    func begin(_ id: TransferID, _ request: TransferRequest, _ prepared: Prepared, _ completion: @escaping Completion) {
        if tokens.takes(request) { return beginElsewhere(id, request, prepared, completion) }
        do throws(TransferFailure) {
            let slot = try source(of: request)
            let transfer = try Transfer(
                id: id, request, prepared, source: slot?.source, template: template, handOver: handOver,
                completion: completion)
            do throws(TransferFailure) {
                let pool = try pools.pool(for: transfer)
                try pool.add(transfer)
                transfer.pool = pool
            } catch {
                transfer.close()
                throw error
            }
            transfers[id] = transfer
            slot?.user = transfer
            if request.options.maxBytesPerSecond != nil { pacedTransfers.insert(id) }
            counts.running += 1
        } catch {
            settle(completion, .failure(error))
        }
    }

    // MARK: Going on, and ending

    /// libcurl has moved the transfers of this pool.
    private func acted(_ pool: ConnectionPool) {
        tellsOutcomes = true
        handOverResponses()
        if !sources.isEmpty { serveSources() }
        while let (easy, code) = pool.multi.nextFinished() {
            let transfer = Transfer.at(easy.owner)
            let opened = easy.number(CURLINFO_NUM_CONNECTS)
            counts.connectionsOpened += opened
            if opened == 0 && code == CURLE_OK { counts.connectionsReused += 1 }
            end(transfer.id, transfer.outcome(code))
        }
        if !pacedTransfers.isEmpty { pacePaused() }
        tellOutcomes()
        pools.closeUnused()
    }

    /// Pools that were told to close do so when nobody acts on them.
    private func planClosing() {
        if pools.hasRetired { loop.soon { [weak self] in self?.pools.closeUnused() } }
    }

    func end(_ id: TransferID, _ outcome: Outcome) {
        if let waiting = endWaiting(id) { return settle(waiting.completion, outcome) }
        guard let transfer = transfers.removeValue(forKey: id) else { return }
        counts.running -= 1
        counts.finished += 1
        if case .success = outcome, let store = transfer.store { flows.add(BodyFlow(start: []), from: store, id) }
        transfer.source?.isPaused = false
        pacedTransfers.remove(id)
        transfer.resuming?.cancel()
        if transfer.isHandedOver {
            transfer.flow?.end(outcome.map { _ in })
            transfer.pool?.multi.hold(-1)
        } else {
            settle(transfer.completion, outcome)
        }
        transfer.pool?.remove(transfer)
        transfer.close()
        if transfer.ntlm.isUnfinished(after: outcome) { pools.forget(transfer.request.identity) }
        planClosing()
    }

    func settle(_ completion: @escaping Completion, _ outcome: Outcome) {
        outcomes.append((completion, outcome))
        guard !tellsOutcomes else { return }
        tellsOutcomes = true
        loop.soon { [weak self] in self?.tellOutcomes() }
    }

    private func tellOutcomes() {
        tellsOutcomes = false
        while !outcomes.isEmpty {
            let told = outcomes
            outcomes = []
            for (completion, outcome) in told { completion(outcome) }
        }
    }

    /// Sees to it that those go on whose time will come.
    private func pacePaused() {
        for id in pacedTransfers {
            guard let transfer = transfers[id], let end = transfer.pausedUntil else { continue }
            if transfer.resuming == nil {
                transfer.resuming = LoopTimer(on: loop) { [unowned self, unowned transfer] in
                    transfer.pausedUntil = nil
                    resume(transfer)
                }
            }
            transfer.resuming?.set(end)
        }
    }

    /// Goes on with a transfer that a callback has paused.
    func resume(_ transfer: Transfer) {
        let code = transfer.easy.resume()
        if code != CURLE_OK { end(transfer.id, transfer.outcome(code)) }
    }
}

extension TransferID {
    private static let last = Atomic(0)

    /// One that no other engine has, either.
    static func next() -> TransferID { TransferID(value: last.add(1, ordering: .relaxed).newValue) }
}

/// After which connections that nobody uses are closed: those of an identity, and those that hold the password of their login.
struct IdleLimits: Sendable {
    var identity = Duration.seconds(EngineLimits.identityIdleSeconds)
    var login = Duration.seconds(EngineLimits.loginIdleSeconds)
}

extension TransferFailure {
    static let cancelled = TransferFailure(.cancelled, "The transfer was cancelled.")
    static let shutDown = TransferFailure(.cancelled, "The transfer engine is shut down.")
    static let timedOut = TransferFailure(
        .timedOut, "What the login needs (a file, a token or a ticket) did not come in time.")
}

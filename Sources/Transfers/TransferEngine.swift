internal import CCurl
public import EventLoop
internal import Synchronization
public import WatchwordCore
internal import WatchwordProtocol

/// Runs libcurl transfers on an event loop, with one connection cache for each identity. A transfer may reuse any
/// connection in its cache.
///
/// Slow preparations (reading files, asking KDCs, loading tokens) run on separate threads: see `Preparations`. Transfers whose
/// handshakes a token signs run on a separate loop: see `TokenTransfers`. Used on the loop only.
public final class TransferEngine {
    typealias Outcome = TransferPort.Outcome
    typealias Delivery = TransferPort.Delivery
    typealias Completion = TransferJob.Completion

    let loop: EventLoop
    /// `nil` once the engine is shut down.
    private var template: EasyHandle?
    var running = RunningTransfers()
    let flows: FlowTable
    var sources: [BodySourceID: SourceSlot] = [:]
    private var pools: PoolTable
    private let preparations: Preparations
    private let outcomes: OutcomeQueue
    var tokens: TokenTransfers
    var figures = TransferStatistics(
        engine: TransferLibrary.version, running: 0, finished: 0, connectionsOpened: 0, connectionsReused: 0)

    /// - Parameter caFile: a PEM file of the certificates to trust in place of the system's.
    /// - Parameter tokenModule: the PKCS#11 module for tokens; `nil` for that of p11-kit.
    /// - Throws: `TransferFailure` if libcurl cannot start.
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
        preparations = Preparations(on: loop, tokenModule: tokenModule) { relay.engine?.end($0, .failure(.timedOut)) }
        outcomes = OutcomeQueue(on: loop)
        tokens = TokenTransfers(caFile: caFile, idle: idle, isHere: ownsTokens)
        relay.engine = self
        flows.engine = self
    }

    private final class Relay {
        weak var engine: TransferEngine?
    }

    /// This engine, for callers that the compiler does not know to be on the loop.
    public var port: LoopBound<TransferEngine> { LoopBound(self, to: loop) }

    func start(
        _ request: SharedRequest, _ quotas: ResponseQuotas, report: @escaping TransferPort.Report = { _ in },
        completion: @escaping Completion
    ) -> TransferID {
        let id = TransferID.next()
        begin(TransferJob(id: id, request: request, quotas, report: report, completion: completion))
        return id
    }

    func cancel(_ id: TransferID) {
        if let elsewhere = tokens.thread(of: id) {
            elsewhere.post { $0.cancel(id) }
            // The other thread may hang, so the caller gets its outcome here.
            return endElsewhere(id, .failure(.cancelled))
        }
        flows[id]?.abort(.cancelled)
        closeTunnel(id)
        end(id, .failure(.cancelled))
    }

    func forget(_ identity: ConnectionIdentity) {
        tokens.post { $0.forget(identity) }
        pools.forget(identity)
        planClosing()
    }

    /// Ends all transfers with `.cancelled`, and closes all connections. Later transfers end in the same way. Further calls
    /// do nothing.
    public func shutDown() {
        guard let template = template.take() else { return }
        tokens.shutDown()
        for id in running.ids + preparations.ids { end(id, .failure(.shutDown)) }
        flows.abortAll(.shutDown)
        for id in running.tunnelIDs { closeTunnel(id) }
        outcomes.deliver()
        preparations.stop()
        pools.closeAll()
        template.close()
    }

    // MARK: Starting

    func begin(_ job: TransferJob) {
        guard template != nil else { return settle(job.completion, .failure(.shutDown)) }
        guard job.request.needsPreparation else { return begin(job, Prepared()) }
        do throws(TransferFailure) {
            try job.request.checkCombination()
            try preparations.add(job) { [weak self] in self?.begin(job.id, prepared: $0) }
            figures.running += 1
        } catch {
            settle(job.completion, .failure(error))
        }
    }

    private func begin(_ id: TransferID, prepared: Result<Prepared, TransferFailure>) {
        guard let waiting = endWaiting(id) else { return }
        switch prepared {
        case .success(let prepared):
            let job = waiting.job
            let request = job.request.changed { $0.timeout = max(.milliseconds(1), waiting.deadline - .now) }
            begin(
                TransferJob(id: id, request: request, job.quotas, report: job.report, completion: job.completion),
                prepared)
        case .failure(let failure): settle(waiting.job.completion, .failure(failure))
        }
    }

    /// Removes a transfer that waits for its preparation; it counts as running until then.
    private func endWaiting(_ id: TransferID) -> Preparations.Waiting? {
        guard let waiting = preparations.remove(id) else { return nil }
        figures.running -= 1
        return waiting
    }

    func begin(_ job: TransferJob, _ prepared: Prepared) {
        if tokens.takes(job.request) { return beginElsewhere(job, prepared) }
        do throws(TransferFailure) {
            guard let template else { throw .shutDown }
            let slot = try source(of: job.request)
            let transfer = try CurlTransfer(
                job, prepared, source: slot?.source, template: template, readyResponses: running.readyResponses)
            do throws(TransferFailure) {
                let pool = try pools.pool(for: transfer)
                try pool.add(transfer)
                transfer.pool = pool
            } catch {
                transfer.close()
                throw error
            }
            running.add(transfer)
            slot?.user = transfer
            figures.running += 1
        } catch {
            settle(job.completion, .failure(error))
        }
    }

    // MARK: Continuing and ending

    /// Called after libcurl has acted on the transfers of this pool.
    private func acted(_ pool: ConnectionPool) {
        outcomes.hold()
        for (transfer, event) in running.takeEvents() { transfer.job.report(event) }
        deliverReadyResponses()
        if !sources.isEmpty { serveSources() }
        while let (easy, code) = pool.multi.nextFinished() {
            let transfer = CurlTransfer.at(easy.owner)
            if transfer.needsAnotherStart(after: code) {
                startAgain(transfer)
                continue
            }
            let opened = easy.number(CURLINFO_NUM_CONNECTS)
            figures.connectionsOpened += opened
            if opened == 0 && code == CURLE_OK { figures.connectionsReused += 1 }
            if code == CURLE_OK, transfer.request.options.opensTunnel { transfer.job.report(.opensTunnel) }
            end(transfer.id, transfer.outcome(code))
        }
        for transfer in running.takeIntermediate() where running[transfer.id] != nil { limitWait(for: transfer) }
        for transfer in running.takeEnded() where running[transfer.id] != nil {
            end(transfer.id, transfer.outcome(CURLE_OK))
        }
        awaitBodies()
        planResuming()
        outcomes.deliver()
        pools.closeUnused()
    }

    /// Delivers a challenge or a redirect after a while, although its body is missing: the body must not decide the outcome.
    private func limitWait(for transfer: CurlTransfer) {
        let timer = LoopTimer(on: loop) { [unowned self, unowned transfer] in
            guard !transfer.body.isDelivered else { return }
            if transfer.deliverHead() {
                deliverReadyResponses()
            } else {
                end(transfer.id, transfer.outcome(CURLE_OPERATION_TIMEDOUT))
            }
        }
        timer.set(in: .seconds(EngineLimits.intermediateBodySeconds))
        transfer.timing.waiting?.cancel()
        transfer.timing.waiting = timer
    }

    /// Sends the request of a transfer again; see `CurlTransfer.needsAnotherStart`.
    private func startAgain(_ transfer: CurlTransfer) {
        guard let pool = transfer.pool.take() else { return }
        pool.remove(transfer)
        do throws(TransferFailure) {
            try transfer.startAgain()
            try pool.add(transfer)
            transfer.pool = pool
        } catch {
            end(transfer.id, .failure(error))
        }
    }

    /// Schedules `closeUnused`, which must not run during a call on a pool.
    private func planClosing() {
        if pools.hasRetired { loop.soon { [weak self] in self?.pools.closeUnused() } }
    }

    func end(_ id: TransferID, _ outcome: Outcome) {
        if let waiting = endWaiting(id) { return settle(waiting.job.completion, outcome) }
        guard let transfer = running.remove(id) else { return }
        figures.running -= 1
        figures.finished += 1
        if case .success = outcome, let store = transfer.body.store {
            flows.add(BodyFlow(start: []), from: store, id)
        }
        let isRelayed = openTunnel(of: transfer, outcome)
        transfer.source?.isPaused = false
        transfer.timing.resuming?.cancel()
        transfer.timing.waiting?.cancel()
        transfer.waiting?.cancel()
        if transfer.body.isDelivered {
            transfer.body.flow?.end(outcome.map { _ in }, trailers: transfer.headers.trailers)
            transfer.pool?.multi.hold(-1)
        } else {
            settle(transfer.job.completion, outcome)
        }
        if isRelayed { return }
        // Removed first, so that the last callback of libcurl does nothing.
        transfer.pool.take()?.remove(transfer)
        transfer.close()
        if transfer.head.ntlm.isUnfinished(after: outcome) { pools.forget(transfer.request.identity) }
        planClosing()
    }

    /// Provides the socket of a tunnel. Returns whether the transfer is still needed, because the proxy expects TLS.
    private func openTunnel(of transfer: CurlTransfer, _ outcome: Outcome) -> Bool {
        guard case .success = outcome, transfer.request.options.opensTunnel else { return false }
        guard transfer.request.proxy?.kind == .https else {
            running.addTunnel(of: transfer)
            return false
        }
        let relay = TunnelRelay(transfer, on: loop) { [unowned self] in
            running.removeRelay($0.id)
            $0.pool?.remove($0)
            $0.close()
            planClosing()
        }
        guard let relay else { return false }
        running.add(relay, transfer.id)
        return true
    }

    func takeTunnel(_ id: TransferID) -> Int32? { running.takeSocket(id) ?? running.relay(id)?.start() }

    private func closeTunnel(_ id: TransferID) {
        running.closeSocket(id)
        running.relay(id)?.end()
    }

    func settle(_ completion: @escaping Completion, _ outcome: Outcome) { outcomes.add(outcome, for: completion) }

    /// Sets timers that resume the transfers paused by their speed limit.
    private func planResuming() {
        for (transfer, end) in running.paused {
            if transfer.timing.resuming == nil {
                transfer.timing.resuming = LoopTimer(on: loop) { [unowned self, unowned transfer] in
                    transfer.timing.pausedUntil = nil
                    resume(transfer)
                }
            }
            transfer.timing.resuming?.set(end)
        }
    }

    /// Resumes a transfer that a callback paused.
    func resume(_ transfer: CurlTransfer) {
        let code = transfer.easy.resume()
        if code != CURLE_OK { end(transfer.id, transfer.outcome(code)) }
    }
}

extension TransferID {
    private static let last = Atomic(0)

    /// Returns an id that is unique in the process.
    static func next() -> TransferID { TransferID(value: last.add(1, ordering: .relaxed).newValue) }
}

/// The times after which idle connections of an identity, or with the password of a login, are closed.
struct IdleLimits: Sendable {
    var identity = Duration.seconds(EngineLimits.identityIdleSeconds)
    var login = Duration.seconds(EngineLimits.loginIdleSeconds)
}

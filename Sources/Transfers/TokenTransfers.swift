internal import EventLoop
internal import WatchwordCore

/// The transfers whose handshakes are signed by a PKCS#11 token, which may take its time or hang: they run on a loop of their
/// own, so that nobody else waits. Begun with the first of them. Lives on the loop of the engine that has it.
struct TokenTransfers {
    private let caFile: String?
    private let idle: IdleLimits
    /// The engine that has this is already the one for tokens.
    private let isHere: Bool
    private var other: TransferThread?
    private var transfers: Set<TransferID> = []
    /// Who waits for an outcome, and for how long: the other thread may hang.
    private var waiting: [TransferID: (completion: Transfer.Completion, limit: LoopTimer)] = [:]
    /// The requests' bodies that have gone there, and stay: libcurl reads them on that loop.
    private var sources: Set<BodySourceID> = []

    init(caFile: String?, idle: IdleLimits, isHere: Bool) {
        (self.caFile, self.idle, self.isHere) = (caFile, idle, isHere)
    }

    /// Whether a transfer has to run there.
    func takes(_ request: TransferRequest) -> Bool {
        if isHere { return false }
        if let source = request.source, sources.contains(source) { return true }
        guard let certificate = request.clientCertificate else { return false }
        if case .token = certificate.privateKey ?? certificate.certificate { return true }
        return false
    }

    func has(_ source: BodySourceID) -> Bool { sources.contains(source) }

    /// Where a transfer runs; `nil` for one that is not there.
    func thread(of id: TransferID) -> TransferThread? { transfers.contains(id) ? other : nil }

    func post(_ call: @escaping @Sendable (TransferEngine) -> Void) { other?.post(call) }

    mutating func began(
        _ id: TransferID, _ source: BodySourceID?, limit: LoopTimer, _ completion: @escaping Transfer.Completion
    ) {
        transfers.insert(id)
        waiting[id] = (completion, limit)
        if let source { sources.insert(source) }
    }

    /// Whoever waits, once; `nil` when nobody does any more.
    mutating func takeWaiting(_ id: TransferID) -> Transfer.Completion? {
        guard let (completion, limit) = waiting.removeValue(forKey: id) else { return nil }
        limit.cancel()
        return completion
    }

    mutating func ended(_ id: TransferID) { transfers.remove(id) }

    /// `false` for one that is not there.
    mutating func release(_ source: BodySourceID) -> Bool {
        guard sources.remove(source) != nil else { return false }
        post { $0.release(source) }
        return true
    }

    /// The engine's thread, started if need be.
    mutating func start() throws(TransferFailure) -> TransferThread {
        if let other { return other }
        let started = try TransferThread(caFile: caFile, idle: idle, ownsTokens: true)
        other = started
        return started
    }

    mutating func shutDown() {
        other?.shutDown()
        other = nil
    }
}

extension TransferRequest {
    /// Of a body that comes through a socket.
    var source: BodySourceID? {
        if case .stream(let stream)? = body { stream.source } else { nil }
    }
}

extension TransferEngine {
    /// Begins a transfer on the loop for tokens.
    func beginElsewhere(
        _ id: TransferID, _ request: TransferRequest, _ prepared: Prepared, _ completion: @escaping Completion
    ) {
        do throws(TransferFailure) {
            let thread = try tokens.start()
            let slot = request.source.flatMap { sources.removeValue(forKey: $0) }
            slot?.close()
            // `nonisolated(unsafe)`: nobody here has it any more.
            nonisolated(unsafe) let source = slot?.source
            let limit = LoopTimer(on: loop) { [unowned self, unowned thread] in
                thread.post { $0.cancel(id) }
                endElsewhere(id, .failure(.timedOut))
            }
            limit.set(in: request.timeout + Self.patience)
            tokens.began(id, request.source, limit: limit, completion)
            counts.running += 1
            thread.post(
                back: loop, { (outcome: Outcome) in self.endElsewhere(id, outcome) },
                { engine, done in
                    if let source { engine.adopt(source, as: request.source) }
                    engine.begin(id, request, prepared, done)
                })
        } catch {
            settle(completion, .failure(error))
        }
    }

    /// What libcurl says of a time that is over comes first, unless it hangs.
    private static let patience = Duration.seconds(1)

    /// Tells the outcome to whoever still waits for it; what comes later is for nobody.
    func endElsewhere(_ id: TransferID, _ outcome: Outcome) {
        if !outcome.hasOpenBody { tokens.ended(id) }
        guard let completion = tokens.takeWaiting(id) else { return }
        counts.running -= 1
        counts.finished += 1
        settle(completion, outcome)
    }

    private func adopt(_ source: BodySource, as id: BodySourceID?) {
        if let id { sources[id] = SourceSlot(source, on: self) }
    }
}

extension TransferPort.Outcome {
    fileprivate var hasOpenBody: Bool { (try? get())?.openBody != nil }
}

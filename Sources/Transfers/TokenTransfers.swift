internal import EventLoop
internal import WatchwordCore
internal import WatchwordProtocol

/// The transfers whose handshakes a PKCS#11 token signs. A token may be slow or hang, so these transfers run on a separate loop
/// and thread, which the first of them starts. Used on the loop of the engine that owns this.
struct TokenTransfers {
    private let caFile: String?
    private let idle: IdleLimits
    /// Whether the owning engine is the separate engine for tokens.
    private let isHere: Bool
    private var other: TransferThread?
    private var transfers: Set<TransferID> = []
    /// The completions that wait for an outcome, with a time limit because the other thread may hang.
    private var waiting: [TransferID: (completion: TransferJob.Completion, limit: LoopTimer)] = [:]
    /// The request bodies that have moved to the loop for tokens, where libcurl reads them. They stay there.
    private var sources: Set<BodySourceID> = []

    init(caFile: String?, idle: IdleLimits, isHere: Bool) {
        (self.caFile, self.idle, self.isHere) = (caFile, idle, isHere)
    }

    /// Whether a transfer has to run on the loop for tokens.
    func takes(_ request: SharedRequest) -> Bool {
        if isHere { return false }
        if let source = request.source, sources.contains(source) { return true }
        guard let certificate = request.clientCertificate else { return false }
        if case .token = certificate.privateKey ?? certificate.certificate { return true }
        return false
    }

    func has(_ source: BodySourceID) -> Bool { sources.contains(source) }

    /// The thread for tokens, if the transfer runs on it; otherwise `nil`.
    func thread(of id: TransferID) -> TransferThread? { transfers.contains(id) ? other : nil }

    func post(_ call: @escaping @Sendable (TransferEngine) -> Void) { other?.post(call) }

    mutating func began(_ job: TransferJob, limit: LoopTimer) {
        transfers.insert(job.id)
        waiting[job.id] = (job.completion, limit)
        if let source = job.request.source { sources.insert(source) }
    }

    /// Removes and returns the completion of a transfer; `nil` if it has been called.
    mutating func takeWaiting(_ id: TransferID) -> TransferJob.Completion? {
        guard let (completion, limit) = waiting.removeValue(forKey: id) else { return nil }
        limit.cancel()
        return completion
    }

    mutating func ended(_ id: TransferID) { transfers.remove(id) }

    /// Releases a request body. Returns `false` if it is not on the loop for tokens.
    mutating func release(_ source: BodySourceID) -> Bool {
        guard sources.remove(source) != nil else { return false }
        post { $0.release(source) }
        return true
    }

    /// Returns the thread for tokens, and starts it if necessary.
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

extension SharedRequest {
    /// The source of a body that the client sends through a socket; `nil` for any other body.
    var source: BodySourceID? {
        if case .stream(let stream)? = value.body { stream.source } else { nil }
    }
}

extension TransferEngine {
    /// Starts a transfer on the loop for tokens.
    func beginElsewhere(_ job: TransferJob, _ prepared: Prepared) {
        do throws(TransferFailure) {
            let thread = try tokens.start()
            let (id, request) = (job.id, job.request)
            let slot = request.source.flatMap { sources.removeValue(forKey: $0) }
            slot?.close()
            let source = slot.map { LoopBound($0.source, to: thread.loop) }
            let prepared = LoopBound(prepared, to: thread.loop)
            let limit = LoopTimer(on: loop) { [unowned self, unowned thread] in
                thread.post { $0.cancel(id) }
                endElsewhere(id, .failure(.timedOut))
            }
            limit.set(in: request.timeout + Self.patience)
            tokens.began(job, limit: limit)
            figures.running += 1
            let report: TransferPort.Report = { [loop] event in _ = loop.post { job.report(event) } }
            thread.post(
                back: loop, { [port] (outcome: Outcome) in port.value.endElsewhere(id, outcome) },
                { engine, done in
                    if let source { engine.adopt(source.value, as: request.source) }
                    engine.begin(
                        TransferJob(id: id, request: request, job.quotas, report: report, completion: done),
                        prepared.value)
                })
        } catch {
            settle(job.completion, .failure(error))
        }
    }

    /// Extra time in which libcurl can report its own timeout, unless it hangs.
    private static let patience = Duration.seconds(1)

    /// Delivers the outcome, unless one was delivered before.
    func endElsewhere(_ id: TransferID, _ outcome: Outcome) {
        if !outcome.hasOpenBody { tokens.ended(id) }
        guard let completion = tokens.takeWaiting(id) else { return }
        figures.running -= 1
        figures.finished += 1
        settle(completion, outcome)
    }

    private func adopt(_ source: BodySource, as id: BodySourceID?) {
        if let id { sources[id] = SourceSlot(source, on: self) }
    }
}

extension TransferPort.Outcome {
    fileprivate var hasOpenBody: Bool { (try? get())?.openBody != nil }
}

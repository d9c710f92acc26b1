internal import EventLoop
internal import WatchwordCore

/// A transfer to be made: its request, and the completion that receives the outcome.
final class TransferJob: Sendable {
    typealias Completion = @Sendable (TransferPort.Outcome) -> Void

    let id: TransferID
    let request: SharedRequest
    let quotas: ResponseQuotas
    /// See `TransferPort.start`.
    let report: TransferPort.Report
    /// Called exactly once.
    let completion: Completion

    init(
        id: TransferID, request: SharedRequest, _ quotas: ResponseQuotas, report: @escaping TransferPort.Report,
        completion: @escaping Completion
    ) {
        (self.id, self.request, self.quotas) = (id, request, quotas)
        (self.report, self.completion) = (report, completion)
    }
}

/// A queue of outcomes, which are delivered only after the call that caused them has returned. Used on its loop only.
final class OutcomeQueue {
    private let loop: EventLoop
    private var waiting: [(completion: TransferJob.Completion, outcome: TransferPort.Outcome)] = []
    private var isPlanned = false

    init(on loop: EventLoop) { self.loop = loop }

    func add(_ outcome: TransferPort.Outcome, for completion: @escaping TransferJob.Completion) {
        waiting.append((completion, outcome))
        guard !isPlanned else { return }
        isPlanned = true
        loop.soon { [weak self] in self?.deliver() }
    }

    /// Stops automatic delivery; the caller delivers the outcomes with `deliver`.
    func hold() { isPlanned = true }

    /// Calls the completions of all queued outcomes.
    func deliver() {
        isPlanned = false
        while !waiting.isEmpty {
            let delivered = waiting
            waiting = []
            for one in delivered { one.completion(one.outcome) }
        }
    }
}

internal import EventLoop
internal import WatchwordCore

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
            for (completion, outcome) in delivered { completion(outcome) }
        }
    }
}

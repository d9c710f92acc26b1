internal import WatchwordCore

/// A transfer to be made: its request, and the completion that receives the outcome.
final class TransferJob: Sendable {
    typealias Completion = @Sendable (TransferPort.Outcome) -> Void

    let id: TransferID
    let request: SharedRequest
    let quotas: ResponseQuotas
    /// Called exactly once.
    let completion: Completion

    init(
        id: TransferID, request: SharedRequest, _ quotas: ResponseQuotas, completion: @escaping Completion
    ) {
        (self.id, self.request, self.quotas, self.completion) = (id, request, quotas, completion)
    }
}

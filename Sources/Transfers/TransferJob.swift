internal import WatchwordCore

/// A transfer to be made: its request, and the completion that receives the outcome.
final class TransferJob: Sendable {
    typealias Completion = @Sendable (TransferPort.Outcome) -> Void

    let id: TransferID
    let request: SharedRequest
    let quotas: ResponseQuotas
    /// Called for each interim response; see `TransferPort.start`.
    let interim: TransferPort.Interim?
    /// Called exactly once.
    let completion: Completion

    init(
        id: TransferID, request: SharedRequest, _ quotas: ResponseQuotas, interim: TransferPort.Interim? = nil,
        completion: @escaping Completion
    ) {
        (self.id, self.request, self.quotas) = (id, request, quotas)
        (self.interim, self.completion) = (interim, completion)
    }
}

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

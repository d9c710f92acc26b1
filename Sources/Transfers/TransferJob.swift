internal import WatchwordCore

/// A transfer to be made: its request, and the completion that receives the outcome.
struct TransferJob: Sendable {
    typealias Completion = @Sendable (TransferPort.Outcome) -> Void

    let id: TransferID
    var request: TransferRequest
    /// Called exactly once.
    let completion: Completion
}

internal import WatchwordCore
internal import WatchwordProtocol

/// One fetch that has not been answered yet. Belongs to the broker's actor.
final class RunningFetch {
    enum State {
        case transferring(TransferID)
        case challenged(challengeID: String, since: Duration)
    }

    let id: String
    let connection: ConnectionID
    let call: ConnectionMachine.CallID
    let requestID: RequestID
    let params: FetchRunParams
    let since: Duration
    var machine: FetchMachine
    /// `nil` only before the first step.
    var state: State?
    /// Spent waiting for answers.
    var challengeTime = Duration.zero

    init(
        id: String, connection: ConnectionID, call: ConnectionMachine.CallID, requestID: RequestID,
        params: FetchRunParams, machine: FetchMachine, since: Duration
    ) {
        self.id = id
        self.connection = connection
        self.call = call
        self.requestID = requestID
        self.params = params
        self.machine = machine
        self.since = since
    }
}

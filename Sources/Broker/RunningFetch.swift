internal import WatchwordCore
internal import WatchwordProtocol

/// One fetch that has not been answered yet. Belongs to the broker's actor.
final class RunningFetch {
    enum State {
        case transferring
        case challenged(challengeID: String)
    }

    let id: String
    let connection: ConnectionID
    let call: ConnectionMachine.CallID
    let requestID: RequestID
    let params: FetchRunParams
    let since: Duration
    var state = State.transferring
    /// Spent waiting for answers.
    var challengeTime = Duration.zero
    var task: Task<Void, Never>?

    init(
        id: String, connection: ConnectionID, call: ConnectionMachine.CallID, requestID: RequestID,
        params: FetchRunParams, since: Duration
    ) {
        self.id = id
        self.connection = connection
        self.call = call
        self.requestID = requestID
        self.params = params
        self.since = since
    }
}

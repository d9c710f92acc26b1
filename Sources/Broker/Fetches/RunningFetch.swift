internal import WatchwordCore
internal import WatchwordProtocol

/// An unanswered fetch. Used on the broker's actor only.
final class RunningFetch {
    typealias Completion = (Result<FetchResponse, FetchFailure>) -> Void

    /// The client that gets the reply, and its request.
    struct Owner {
        let connection: ConnectionID
        /// `nil` for `fetch/start`, whose call was answered at once.
        let call: Call<FetchRun>?
        let requestID: RequestID
    }

    let request: SharedFetchRequest
    /// `nil` for a fetch of the broker itself that no client can be asked about.
    let owner: Owner?
    let since: Duration
    /// The client that started the fetch.
    let client: AuditEvent.Client?
    /// The program that started the fetch, as `Subject.text`.
    let program: ExactText
    var isRunning = true
    /// The quota usage of this fetch, until it ends.
    private(set) var usage: FetchUsage?
    /// The transfer in progress, if any.
    var transfer: TransferID?
    /// The deadline of a wait for another fetch or a lookup.
    var waitTimer: DeadlineTimer?
    /// The ID of the pending question, if any.
    var question: String?
    /// The last answer with a credential, until its outcome is known.
    var openAnswer: OpenAnswer?
    /// The total time spent waiting for answers to challenges and consent prompts.
    var challengeTime = Duration.zero
    /// Set only for a fetch begun with `fetch/start`.
    var steps: FetchSteps?
    /// Called with the outcome of a fetch of the broker itself; `nil` for a fetch of a client.
    let completion: Completion?
    /// The search for a token for which the fetch waits.
    var tokenSearch: Int?
    /// The request to a front that the fetch answers; `nil` for a fetch of a client.
    var answer: FrontAnswer?
    /// The source of a request body that is attached through a socket (`fetch/attach`).
    var source: BodySourceID?
    /// The open body of the response that is being processed.
    var openBody: OpenBody?

    var id: FetchID { request.id }
    var origin: Origin { request.url.origin }

    /// The cause of events in this fetch, for the audit log.
    var cause: Cause { Cause(client: client, fetchID: "\(id)") }

    /// - Parameters:
    ///   - connection: the client that can be asked about the fetch, and is charged for it; `nil` for none.
    ///   - requestID: the request of the client that started the fetch.
    init(
        _ request: SharedFetchRequest, of connection: ClientConnection?, _ requestID: RequestID = .null,
        replyTo call: Call<FetchRun>? = nil, chargedBytes: Int, since: Duration, completion: Completion? = nil
    ) {
        self.request = request
        self.since = since
        self.completion = completion
        owner = connection.map { Owner(connection: $0.id, call: call, requestID: requestID) }
        (client, program) = (connection?.auditClient, connection?.peer.subject.text ?? "")
        usage = connection.map { FetchUsage(in: $0.quotas, bytes: chargedBytes) }
        connection?.fetches.insert(id)
    }

    /// Ends the assignment to `connection`, and releases the quota.
    func leave(_ connection: ClientConnection) {
        connection.fetches.remove(id)
        usage = nil
    }
}

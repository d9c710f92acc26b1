internal import WatchwordCore
internal import WatchwordProtocol

/// An unanswered fetch. Used on the broker's actor only.
final class RunningFetch {
    /// The client that gets the reply, and its request.
    struct Owner {
        let connection: ConnectionID
        /// `nil` for `fetch/start`, whose call was answered at once.
        let call: Call<FetchRun>?
        let requestID: RequestID
    }

    let request: SharedFetchRequest
    /// `nil` while the fetch is parked.
    var owner: Owner?
    /// How challenges are delivered to the client.
    let delivery: ChallengeDelivery
    let since: Duration
    /// The client that started the fetch or, after parking, resumed it.
    var client: AuditEvent.Client?
    /// The program that started the fetch, as `Subject.text`.
    var program: ExactText = ""
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
    var completion: ((Result<FetchResponse, FetchFailure>) -> Void)?
    /// The search for a token for which the fetch waits.
    var tokenSearch: Int?
    /// The request to a front that the fetch answers; `nil` for a fetch of a client.
    var answer: FrontAnswer?
    /// The source of a request body that is attached through a socket (`fetch/attach`).
    var source: BodySourceID?
    /// The number of stored bytes of request data that were received in messages.
    var chargedBytes: Int
    /// The quota usage of this fetch. While the fetch is parked, it is charged to the program, not to a connection.
    var usage: FetchUsage?
    /// The open body of the response that is being processed.
    var openBody: OpenBody?

    var id: FetchID { request.id }
    var origin: Origin { request.url.origin }

    /// The cause of events in this fetch, for the audit log.
    var cause: Cause { Cause(client: client, fetchID: "\(id)") }

    init(_ request: SharedFetchRequest, delivery: ChallengeDelivery, chargedBytes: Int, since: Duration) {
        self.request = request
        self.delivery = delivery
        self.chargedBytes = chargedBytes
        self.since = since
    }

    /// Assigns the fetch to `connection`, which gets the reply and is charged for the fetch.
    func belong(to connection: ClientConnection) {
        connection.fetches.insert(id)
        usage = FetchUsage(in: connection.quotas, bytes: chargedBytes)
    }

    /// Ends the assignment to `connection`, and releases the quota.
    func leave(_ connection: ClientConnection) {
        if connection.fetches.remove(id) != nil { usage = nil }
    }
}

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

    /// The parameters of the request that are needed after its start.
    struct Params {
        let url: String
        let method: String
        let notify: [FetchNotification]
        let maxInlineBodyBytes: Int
        /// `nil` without a handler.
        let handlerDelivery: ChallengeDelivery?

        init(_ params: borrowing FetchRunParams) {
            (url, method, notify) = (params.url, params.method, params.notify)
            (maxInlineBodyBytes, handlerDelivery) = (params.maxInlineBodyBytes, params.handler?.delivery)
        }
    }

    let id: FetchID
    /// `nil` while the fetch is parked.
    var owner: Owner?
    let params: Params
    /// How challenges are delivered to the client.
    let delivery: ChallengeDelivery
    let origin: Origin
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

    /// The cause of events in this fetch, for the audit log.
    var cause: Cause { Cause(client: client, fetchID: "\(id)") }

    init(
        id: FetchID, params: borrowing FetchRunParams, delivery: ChallengeDelivery, origin: Origin, since: Duration
    ) {
        self.id = id
        self.params = Params(params)
        chargedBytes = params.chargedBytes
        self.delivery = delivery
        self.origin = origin
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

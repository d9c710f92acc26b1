internal import WatchwordCore
internal import WatchwordProtocol

/// One fetch that has not been answered yet. Belongs to the broker's actor.
final class RunningFetch {
    /// Who gets the reply: nobody while a fetch is parked between its two halves.
    struct Owner {
        let connection: ConnectionID
        /// `nil` for a fetch in steps: its call was answered at once.
        let call: CallID?
        let requestID: RequestID
    }

    let id: FetchID
    var owner: Owner?
    let params: FetchRunParams
    /// How its client is asked.
    let delivery: ChallengeDelivery
    let origin: Origin
    let since: Duration
    /// Who has started it, or has come back with its second half.
    var client: AuditEvent.Client?
    /// The program that has started it, as `Subject.text` has it.
    var program: ExactText = ""
    /// While one is under way.
    var transfer: TransferID?
    /// Ends a wait for another fetch, or a look-up, that has lasted too long.
    var waitTimer: DeadlineTimer?
    /// The name of its question, while one is pending.
    var question: String?
    /// The last login that somebody supplied for it, until it is known what became of it.
    var openAnswer: OpenAnswer?
    /// Spent waiting for answers.
    var challengeTime = Duration.zero
    /// Only of a fetch in steps.
    var steps: FetchSteps?
    /// Of a request whose body comes through a socket.
    var source: BodySourceID?
    /// What of its request came in messages, and is kept.
    var heldBytes: Int
    /// That it counts for its client; between two halves for the program alone.
    var holding: FetchHolding?
    /// Of the response that is being looked at.
    var openBody: OpenBody?

    /// Of what happens for it.
    var cause: Cause { Cause(client: client, fetchID: "\(id)") }

    init(id: FetchID, params: FetchRunParams, delivery: ChallengeDelivery, origin: Origin, since: Duration) {
        self.id = id
        self.params = params
        heldBytes = params.heldBytes
        self.delivery = delivery
        self.origin = origin
        self.since = since
    }

    /// `connection` has it: its reply comes there, and it counts there.
    func belong(to connection: ClientConnection) {
        connection.fetches.insert(id)
        holding = FetchHolding(in: connection.holdings, bytes: heldBytes)
    }

    func leave(_ connection: ClientConnection) {
        if connection.fetches.remove(id) != nil { holding = nil }
    }
}

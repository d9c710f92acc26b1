internal import WatchwordCore
internal import WatchwordProtocol

/// One fetch that has not been answered yet. Belongs to the broker's actor.
final class RunningFetch {
    enum State {
        case transferring(TransferID)
        case challenged(challengeID: String, since: Duration)
        case consulting(ConnectionID, request: Int, deadline: DeadlineTimer)
        /// Somebody is asked whether it may use what is kept.
        case confirming(String, since: Duration)
        case lookingUp(DeadlineTimer?)
        /// For another fetch. The timer tells when that has lasted too long.
        case waiting(DeadlineTimer?)
        /// The client is asked for the request's body.
        case needingBody(ConnectionID, request: Int, deadline: DeadlineTimer)
    }

    /// Who gets the reply: nobody while a fetch is parked between its two halves.
    struct Owner {
        let connection: ConnectionID
        /// `nil` for a fetch in steps: its call was answered at once.
        let call: ConnectionMachine.CallID?
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
    var program = ""
    /// `nil` only before the first step.
    var state: State?
    /// The last one that was put.
    var consultation: Consultation?
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

    var transfer: TransferID? { if case .transferring(let transfer)? = state { transfer } else { nil } }

    /// Of what happens for it.
    var cause: Cause { Cause(client: client, fetchID: "\(id)") }

    init(
        id: FetchID, params: FetchRunParams, delivery: ChallengeDelivery, origin: Origin, since: Duration
    ) {
        self.id = id
        self.params = params
        heldBytes = params.heldBytes
        self.delivery = delivery
        self.origin = origin
        self.since = since
    }
}

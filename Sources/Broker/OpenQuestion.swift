internal import WatchwordCore
internal import WatchwordProtocol

/// A challenge that waits for its answer. Whoever takes it out of the broker's table decides what comes of it.
struct OpenQuestion {
    /// Where it is now.
    enum Place: Equatable {
        case client(ConnectionID)
        case agent(ConnectionID)
        /// With a client that is to come back with this token.
        case parked(token: String)

        var connection: ConnectionID? {
            switch self {
            case .client(let id), .agent(let id): id
            case .parked: nil
            }
        }
    }

    let fetch: FetchID
    let challenge: Challenge
    var place: Place
    /// Runs from its delivery; before that, for as long as it may wait for one.
    var deadline: DeadlineTimer?
    /// Agents that have had it, and have no answer.
    var passedOn: Set<ConnectionID> = []

    /// How it comes to where it is now.
    func delivery(in fetch: RunningFetch) -> ChallengeDelivery {
        guard case .client = place else { return .request }
        return challenge.isForHandler ? fetch.params.handler?.delivery ?? .request : fetch.delivery
    }
}

extension ConnectionID {
    /// The same name, as the core knows it.
    var tag: ClientTag { ClientTag(value: value) }
}

/// Why a question is taken back from somebody.
enum WithdrawalReason: String {
    case cancelled, deadline
}

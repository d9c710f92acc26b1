internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// Something that a client or an agent is asked for a fetch, until it is answered. A fetch has at most one.
struct PendingQuestion {
    enum Content {
        case challenge(Challenge)
        /// Whether the program may use a stored credential.
        case consent(ConsentRequest)
        case consultation(Consultation)
        /// For the body of the request, once more.
        case body
    }

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

        var word: String { if case .agent = self { "agent" } else { "client" } }
    }

    let id: String
    let fetch: FetchID
    let content: Content
    let since: Duration
    var place: Place
    /// The request that carries it; `nil` before its delivery, and for a challenge.
    var request: Int?
    /// Runs from its delivery; before that, for as long as it may wait for one.
    var deadline: DeadlineTimer?
    /// Agents that have had it, and have no answer.
    var passedOn: Set<ConnectionID> = []

    var challenge: Challenge? { if case .challenge(let challenge) = content { challenge } else { nil } }

    var isConsent: Bool { if case .consent = content { true } else { false } }

    var isForAgent: Bool { if case .agent = place { true } else { false } }

    /// Whether `connection` has it as the client that is subscribed, not as the handler of one fetch.
    var isForSubscriber: Bool { if case .client = place { challenge?.isForHandler != true } else { false } }

    /// How a challenge comes to where it is now.
    func delivery(of challenge: Challenge, in fetch: RunningFetch) -> ChallengeDelivery {
        guard case .client = place else { return .request }
        return challenge.isForHandler ? fetch.params.handler?.delivery ?? .request : fetch.delivery
    }

    func tellCancelled(_ reason: WithdrawalReason, _ connection: ClientConnection) {
        let params: JSON = [
            "challengeId": .string(id), "fetchId": .string("\(fetch)"), "reason": .string(reason.rawValue),
        ]
        connection.notify(.authCancelled, params)
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

/// What one connection is asked.
final class AskedClient {
    var challenges = PendingChallenges()
    /// Questions for it that wait until it takes more.
    var queue = QuestionQueue()
    /// Other questions that it has not answered, by the number of their request.
    var requests: [Int: String] = [:]
}

/// Why a respondent has no answer to a question.
enum NoAnswer: String {
    /// It said `default`: as though it had not been asked.
    case declined
    case deadline
    /// It has ended its connection, or its writing side.
    case disconnected
    /// It takes no more questions (`auth/unsubscribe`, `agent/unregister`).
    case unregistered
    /// It replied with an error.
    case failed
    /// The fetch of the question has ended first.
    case cancelled

    /// Whether it never answered. Then nothing that is stored is sent (security rule X1).
    var isSilence: Bool { self != .declined }
}

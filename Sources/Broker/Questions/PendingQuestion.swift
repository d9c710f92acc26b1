internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// An unanswered question about a fetch, to a client or an agent. A fetch has at most one.
struct PendingQuestion {
    enum Content {
        case challenge(Challenge)
        /// A request for consent to the use of a stored credential.
        case consent(ConsentRequest)
        case consultation(Consultation)
        /// A request to supply the request body again.
        case body
    }

    /// The respondent of a question.
    enum Place: Equatable {
        case client(ConnectionID)
        case agent(ConnectionID)

        var connection: ConnectionID {
            switch self {
            case .client(let id), .agent(let id): id
            }
        }

        var word: String { if case .agent = self { "agent" } else { "client" } }
    }

    let id: String
    let fetch: FetchID
    let content: Content
    let since: Duration
    var place: Place
    /// The number of the request that delivered the question; `nil` before delivery and for challenges.
    var request: Int?
    /// The deadline for the answer; before delivery, the deadline for waiting in the queue.
    var deadline: DeadlineTimer?
    /// The agents from which the question has moved on, because they answered `default`, gave no answer, or have
    /// unregistered.
    var passedOn: Set<ConnectionID> = []

    var challenge: Challenge? { if case .challenge(let challenge) = content { challenge } else { nil } }

    var isConsent: Bool { if case .consent = content { true } else { false } }

    var isForAgent: Bool { if case .agent = place { true } else { false } }

    /// Whether the respondent is the subscribed client rather than the handler of the fetch.
    var isForSubscriber: Bool { if case .client = place { challenge?.isForHandler != true } else { false } }

    /// Returns how a challenge is delivered to its respondent.
    func delivery(of challenge: Challenge, in fetch: RunningFetch) -> ChallengeDelivery {
        guard case .client = place else { return .request }
        return (challenge.isForHandler ? fetch.request.handler : fetch.request.subscription)?.delivery ?? .request
    }

    func notifyCancelled(_ reason: WithdrawalReason, _ connection: ClientConnection) {
        let params: JSON = [
            "challengeId": .string(id), "fetchId": .string("\(fetch)"), "reason": .string(reason.rawValue),
        ]
        connection.notify(.authCancelled, params)
    }
}

extension ConnectionID {
    /// The identifier of this connection in WatchwordCore.
    var tag: ClientTag { ClientTag(value: value) }
}

/// The reason why a question is withdrawn from a respondent.
enum WithdrawalReason: String {
    case cancelled, deadline
    /// A login in a browser has answered the challenge.
    case answered
}

/// The open questions to one connection.
final class AskedClient {
    var challenges = PendingChallenges()
    /// Questions that wait because `maxPending` questions are delivered and unanswered.
    var queue = QuestionQueue()
    /// The IDs of the other unanswered questions (consent, consultations, bodies, prompts of programs), by the number of
    /// their request.
    var requests: [Int: String] = [:]
}

/// The reason why a question has no answer from a respondent.
enum NoAnswer: String {
    /// The respondent answered `default`. The broker continues as if the respondent had not been asked.
    case declined
    case deadline
    /// The respondent has closed its connection, or its writing side.
    case disconnected
    /// The respondent accepts no more questions (`auth/unsubscribe`, `agent/unregister`).
    case unregistered
    /// The respondent replied with an error.
    case failed
    /// The fetch has ended before the answer.
    case cancelled

    /// Whether the respondent has not answered. Then no credential may be sent as a consequence (SECURITY-RULES X1).
    var isSilence: Bool { self != .declined }
}

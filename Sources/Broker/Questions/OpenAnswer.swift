internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// An answer with a credential that the server has neither accepted nor refused yet.
struct OpenAnswer {
    /// The outcome of an answer.
    enum Outcome: String {
        case accepted, refused
        /// The fetch has ended before a verdict of the server.
        case abandoned
        /// Another question followed, because the credential could not be used or the login has several rounds.
        case superseded
    }

    let challengeID: String
    let space: ProtectionSpace
    let isOfAgent: Bool
    /// `client` or `agent`.
    let by: String
    let connection: ConnectionID

    /// Returns `nil` for answers on which a server gives no verdict: trust decisions, and all answers without a
    /// credential.
    init?(_ question: PendingQuestion, _ challenge: Challenge, _ answer: ChallengeAnswer) {
        guard case .credential(let credential) = answer else { return nil }
        if case .trust = credential { return nil }
        challengeID = question.id
        (space, isOfAgent) = (challenge.protectionSpace, question.isForAgent)
        by = question.place.word
        connection = question.place.connection
    }

    var isProxy: Bool { space.proxyType != nil }

    func isAbout(_ verdict: LoginVerdict) -> Bool { isProxy == (verdict.space.proxyType != nil) }
}

/// Notifies respondents of the outcome of their answers, and the other agents of the end of a question.
extension ClientRegistry {
    /// Notifies the respondent of the verdict of a server or proxy on the login that it supplied.
    func notify(_ verdict: LoginVerdict, of fetch: RunningFetch) {
        guard let answer = fetch.openAnswer, answer.isAbout(verdict) else { return }
        notifyOutcome(verdict.isAccepted ? .accepted : .refused, user: verdict.user, of: fetch)
    }

    /// Sends the outcome of the last answer in this fetch to its respondent, once.
    func notifyOutcome(_ outcome: OpenAnswer.Outcome, user: ExactText? = nil, of fetch: RunningFetch) {
        guard let answer = fetch.openAnswer else { return }
        fetch.openAnswer = nil
        self[answer.connection]?.notify(
            .authResolved,
            [
                "challengeId": .string(answer.challengeID), "action": "credential", "by": .string(answer.by),
                "outcome": .string(outcome.rawValue), "user": user?.json,
            ])
    }

    /// Notifies the other agents that a question at an agent is closed, so that they can close their prompts for it.
    /// - Parameter action: `nil` if the question was not answered.
    func announceResolution(of question: PendingQuestion, action: String?, by name: String) {
        guard case .agent(let answerer) = question.place else { return }
        let params: JSON = [
            "challengeId": .string(question.id), "action": .string(action ?? "none"), "by": .string(name),
            "outcome": action == nil ? .string(OpenAnswer.Outcome.abandoned.rawValue) : nil,
        ]
        for connection in all where connection.profile.agent != nil && connection.id != answerer {
            connection.notify(.authResolved, params)
        }
    }
}

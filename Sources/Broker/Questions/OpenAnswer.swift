internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// A login that somebody supplied in an answer, and of which it is not known yet what the server makes of it.
struct OpenAnswer {
    /// How it ended.
    enum Outcome: String {
        case accepted, refused
        /// The fetch has ended without a word of the server about it.
        case abandoned
        /// Another question has taken its place: the answer could not be used, or was one of several rounds.
        case superseded
    }

    let challengeID: String
    let isProxy: Bool
    /// `client` or `agent`.
    let by: String
    let connection: ConnectionID

    /// `nil` for what the server says nothing about.
    init?(_ question: PendingQuestion, _ challenge: Challenge, _ answer: ChallengeAnswer) {
        guard case .credential(let credential) = answer, let connection = question.place.connection else { return nil }
        if case .trust = credential { return nil }
        challengeID = question.id
        isProxy = challenge.protectionSpace.proxyType != nil
        by = question.place.word
        self.connection = connection
    }

    func isAbout(_ verdict: LoginVerdict) -> Bool { isProxy == (verdict.space.proxyType != nil) }
}

/// Telling how questions ended: whoever answered, and the other agents.
extension ClientRegistry {
    /// The server, or the proxy, has looked at a login.
    func judge(_ verdict: LoginVerdict, of fetch: RunningFetch) {
        guard let answer = fetch.openAnswer, answer.isAbout(verdict) else { return }
        tellOutcome(verdict.isAccepted ? .accepted : .refused, user: verdict.user, of: fetch)
    }

    /// Tells whoever gave the last answer of this fetch what became of it, unless it knows.
    func tellOutcome(_ outcome: OpenAnswer.Outcome, user: ExactText? = nil, of fetch: RunningFetch) {
        guard let answer = fetch.openAnswer else { return }
        fetch.openAnswer = nil
        self[answer.connection]?.notify(
            .authResolved,
            [
                "challengeId": .string(answer.challengeID), "action": "credential", "by": .string(answer.by),
                "outcome": .string(outcome.rawValue), "user": user?.json,
            ])
    }

    /// Other agents can close their windows about the same question.
    /// - Parameter action: `nil` where nobody has answered.
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

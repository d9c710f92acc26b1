internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// Telling how questions ended: the other agents, so that their windows close, and whoever answered, so that it can say so.
extension Router {
    /// Other windows about the same question can be closed.
    /// - Parameter action: `nil` where nobody has answered.
    func announceResolution(_ challengeID: String, _ question: OpenQuestion, action: String?, by name: String) {
        guard case .agent(let answerer) = question.place else { return }
        let params: JSON = [
            "challengeId": .string(challengeID), "action": .string(action ?? "none"), "by": .string(name),
            "outcome": action == nil ? .string(OpenAnswer.Outcome.abandoned.rawValue) : nil,
        ]
        for connection in clients.all where connection.agent != nil && connection.id != answerer {
            connection.notify(.authResolved, params)
        }
    }

    /// The server, or the proxy, has looked at a login.
    func judge(_ verdict: LoginVerdict, of fetch: RunningFetch) {
        guard let answer = fetch.openAnswer, answer.isAbout(verdict) else { return }
        tellOutcome(verdict.isAccepted ? .accepted : .refused, user: verdict.user, of: fetch)
    }

    /// Tells whoever gave the last answer of this fetch what became of it, unless it knows.
    func tellOutcome(_ outcome: OpenAnswer.Outcome, user: ExactText? = nil, of fetch: RunningFetch) {
        guard let answer = fetch.openAnswer else { return }
        fetch.openAnswer = nil
        clients[answer.connection]?.notify(
            .authResolved,
            [
                "challengeId": .string(answer.challengeID), "action": "credential", "by": .string(answer.by),
                "outcome": .string(outcome.rawValue), "user": user?.json,
            ])
    }
}

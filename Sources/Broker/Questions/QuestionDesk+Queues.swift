internal import WatchwordCore
internal import WatchwordProtocol

/// Queues questions for clients and agents that limit the number of open questions (`maxPending`).
extension QuestionDesk {
    /// Delivers an open question, or queues it if the respondent has no room.
    func put(_ id: String, to connection: ClientConnection) {
        guard let question = self[id] else { return }
        let queue = asked(connection.id).queue
        let isRoom = queue.admits(delivered: deliveredCount(at: connection.id), limit: connection.maxPending)
        guard !isRoom else { return deliver(question, to: connection) }
        asked(connection.id).queue.append(id)
        // A wait in the queue of the fetch's own client is not reported, because the client has set the limit of that
        // queue.
        if question.isForAgent { fetches.report { $0.queued(question.fetch, $1) } }
        // At an agent, a question waits for the questions of other fetches, so the time limit of its fetch applies.
        let end = question.isForAgent ? fetches.table.deadline(of: question.fetch) : nil
        let limit = end.map { max(.zero, $0 - context.now) } ?? Limits.leaseWait
        setDeadline(limit, of: id, isQueued: question.isForAgent)
    }

    func deliverQueued(to id: ConnectionID) {
        guard let connection = clients[id] else { return }
        while let next = asked(id).queue.next(delivered: deliveredCount(at: id), limit: connection.maxPending) {
            guard let question = self[next] else {
                fetches.desks.programPrompts.deliverQueued(next, to: connection)
                continue
            }
            if mayStillAsk(question) { deliver(question, to: connection) }
        }
    }

    /// Returns whether a queued question may still be delivered: meanwhile, the user may have cancelled or stopped
    /// prompts of the same program. If not, the question is closed.
    private func mayStillAsk(_ question: PendingQuestion) -> Bool {
        guard question.isForAgent, let fetch = fetches[question.fetch] else { return true }
        switch question.content {
        case .challenge(let challenge): return mayPrompt(about: challenge, for: fetch)
        case .consent(let request):
            guard !prompts.mayConfirm(request, for: fetch.program) else { return true }
            settleConsent(question.id, nil, by: "nobody")
            return false
        case .consultation, .body: return true
        }
    }

    /// Delivers a question, and starts its deadline.
    private func deliver(_ question: PendingQuestion, to connection: ClientConnection) {
        if question.isForAgent { fetches.change { $0.delivered(question.fetch, fetches.environment) } }
        setDeadline(context.challengeDeadline(question.challenge), of: question.id)
        guard let fetch = fetches[question.fetch] else { return }
        switch question.content {
        case .challenge(let challenge): deliver(challenge, question, of: fetch, to: connection)
        case .consent(let request): send(request, question.id, of: fetch, to: connection)
        case .consultation, .body: break
        }
    }

    func deliveredCount(at id: ConnectionID) -> Int {
        let respondent = asked(id)
        // Requests without a question are prompts of programs (`AskpassDesk`).
        let consents = respondent.requests.values.count { self[$0]?.isConsent ?? true }
        return respondent.challenges.count + consents
    }
}

extension ClientConnection {
    /// The number of questions that the client accepts at once; `nil` without a limit.
    var maxPending: Int? {
        [profile.subscription?.maxPending, profile.agent?.maxPending].compactMap(\.self).min()
    }
}

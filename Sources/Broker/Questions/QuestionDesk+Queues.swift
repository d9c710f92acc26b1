internal import WatchwordCore
internal import WatchwordProtocol

/// Delivering questions, to asked that take only so many at once (`maxPending`).
extension QuestionDesk {
    /// Delivers an open question, or queues it behind those that the respondent has.
    func put(_ id: String, to connection: ClientConnection) {
        guard let question = self[id] else { return }
        let queue = asked(connection.id).queue
        let isRoom = queue.admits(delivered: deliveredCount(at: connection.id), limit: connection.maxPending)
        guard !isRoom else { return deliver(question, to: connection) }
        asked(connection.id).queue.append(id)
        // What waits for the client itself is the client's own affair.
        if question.isForAgent { fetches.report { $0.queued(question.fetch, $1) } }
        // In its queue a question waits for others, for no longer than its fetch may.
        let end = question.isForAgent ? fetches.table.deadline(of: question.fetch) : nil
        let limit = end.map { max(.zero, $0 - context.now) } ?? Limits.turnWait
        setDeadline(limit, of: id, isQueued: question.isForAgent)
    }

    func deliverQueued(to id: ConnectionID) {
        guard let connection = clients[id] else { return }
        while let next = asked(id).queue.next(delivered: deliveredCount(at: id), limit: connection.maxPending) {
            if let question = self[next], mayStillAsk(question) { deliver(question, to: connection) }
        }
    }

    /// The questions of a program whose earlier one was cancelled meanwhile are not put one after the other.
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

    /// Its time counts from now.
    private func deliver(_ question: PendingQuestion, to connection: ClientConnection) {
        if question.isForAgent { fetches.change { $0.delivered(question.fetch, fetches.environment) } }
        setDeadline(context.options.challengeDeadline, of: question.id)
        guard let fetch = fetches[question.fetch] else { return }
        switch question.content {
        case .challenge(let challenge): deliver(challenge, question, of: fetch, to: connection)
        case .consent(let request): send(request, question.id, of: fetch, to: connection)
        case .consultation, .body: break
        }
    }

    private func deliveredCount(at id: ConnectionID) -> Int {
        let respondent = asked(id)
        let consents = respondent.requests.values.count { self[$0]?.isConsent ?? false }
        return respondent.challenges.count + consents + parked.count(at: id)
    }
}

extension ClientConnection {
    /// How many questions it takes at once; `nil` without a limit.
    fileprivate var maxPending: Int? {
        [profile.subscription?.maxPending, profile.agent?.maxPending].compactMap(\.self).min()
    }
}

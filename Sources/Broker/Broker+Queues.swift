internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Delivering questions, to respondents that take only so many at once (`maxPending`).
extension Router {
    /// Delivers an open question or confirmation, or queues it behind those that the respondent has.
    func put(_ id: String, to connection: ClientConnection) {
        let isRoom = connection.queue.admits(
            delivered: deliveredCount(at: connection), limit: connection.maxPending)
        guard !isRoom else { return deliver(id, to: connection) }
        connection.queue.append(id)
        let fetch = fetchOfAgentQuestion(id)
        if let fetch { perform(table.queued(fetch, environment)) }
        // In its queue a question waits for others, for no longer than its fetch may.
        let limit = fetch.flatMap { table.deadline(of: $0) }.map { max(.zero, $0 - clock.now) }
        setDeadline(startDeadline(of: id, limit: limit ?? Limits.turnWait, queuedFetch: fetch), of: id)
    }

    /// The fetch whose question for an agent this is. What waits for the client itself is the client's own affair.
    private func fetchOfAgentQuestion(_ id: String) -> FetchID? {
        if let question = questions[id], case .agent = question.place { return question.fetch }
        return confirmations[id]?.fetch
    }

    /// A question left this connection: there may be room for the next one, once everything else is done.
    func noteRoom(at connection: ClientConnection) {
        guard !connection.queue.waiting.isEmpty else { return }
        let id = connection.id
        way.post { $0.deliverQueued(to: id) }
    }

    private func deliverQueued(to id: ConnectionID) {
        guard let connection = clients[id] else { return }
        while let next = connection.queue.next(
            delivered: deliveredCount(at: connection), limit: connection.maxPending)
        {
            if mayStillAsk(next) { deliver(next, to: connection) }
        }
    }

    /// The questions of a program whose earlier one was cancelled meanwhile are not put one after the other.
    private func mayStillAsk(_ id: String) -> Bool {
        if let open = confirmations[id], let fetch = fetches[open.fetch] {
            guard !mayConfirm(open.request, for: fetch) else { return true }
            settleConfirmation(id, nil, by: "nobody")
            return false
        }
        guard let question = questions[id], case .agent = question.place, let fetch = fetches[question.fetch] else {
            return true
        }
        return mayPrompt(about: question.challenge, for: fetch)
    }

    /// Its time counts from now.
    private func deliver(_ id: String, to connection: ClientConnection) {
        if let fetch = fetchOfAgentQuestion(id) { table.delivered(fetch, environment) }
        setDeadline(startDeadline(of: id, limit: options.challengeDeadline), of: id)
        if let question = questions[id], let fetch = fetches[question.fetch] {
            if question.delivery(in: fetch) == .result {
                park(fetch, question.challenge, id, of: connection)
            } else {
                deliver(id, question, of: fetch, to: connection)
            }
        } else if confirmations[id] != nil {
            send(id, to: connection)
        }
    }

    private func setDeadline(_ deadline: DeadlineTimer, of id: String) {
        questions[id]?.deadline?.cancel()
        questions[id]?.deadline = deadline
        confirmations[id]?.deadline?.cancel()
        confirmations[id]?.deadline = deadline
    }

    private func startDeadline(of id: String, limit: Duration, queuedFetch: FetchID? = nil) -> DeadlineTimer {
        after(limit) { $0.deadlineHasCome(of: id, queuedFetch) }
    }

    private func deadlineHasCome(of id: String, _ queuedFetch: FetchID?) {
        if let queuedFetch, let fetch = fetches[queuedFetch],
            let failure = table.queueTimeout(of: queuedFetch, environment)
        {
            cancel(fetch, failure)
        } else if questions[id] != nil {
            audit.counters.challengesTimedOut += 1
            log.info("challenge timed out", metadata: ["challenge": "\(id)"])
            passOn(id, because: .deadline)
        } else {
            passOnConfirmation(id, because: "deadline")
        }
    }

    private func deliveredCount(at connection: ClientConnection) -> Int {
        let parkedCount = parked.values.count { $0.connection == connection.id }
        return connection.challenges.count + connection.confirmations.count + parkedCount
    }
}

extension ClientConnection {
    /// How many questions it takes at once; `nil` without a limit.
    var maxPending: Int? { [subscription?.maxPending, agent?.maxPending].compactMap(\.self).min() }
}

internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Manages all questions of the broker: challenges, consent prompts, consultations and requests for the body. Owns the
/// table of pending questions with their deadlines, and the open questions to each connection. Each answer, or its
/// absence, is reported to the fetch table. The caller that removes a question from the table handles its outcome.
final class QuestionDesk {
    let context: DeskContext
    let audit: AuditRecorder
    let clients: ClientRegistry
    let bodies: BodyDesk
    let prompts: PromptThrottle
    unowned let fetches: FetchRouter
    let reference: DeskReference<QuestionDesk>
    private var pending: [String: PendingQuestion] = [:]
    private var asked: [ConnectionID: AskedClient] = [:]

    init(_ fetches: FetchRouter, _ bodies: BodyDesk, _ reference: DeskReference<QuestionDesk>) {
        (context, audit, clients) = (fetches.context, fetches.audit, fetches.clients)
        (self.bodies, self.fetches, self.reference) = (bodies, fetches, reference)
        prompts = PromptThrottle(context, audit)
    }

    subscript(id: String) -> PendingQuestion? { pending[id] }

    /// Returns the questions that match, in the order of their fetches.
    func all(where matches: (PendingQuestion) -> Bool) -> [PendingQuestion] {
        pending.values.filter(matches).sorted { $0.fetch.number < $1.fetch.number }
    }

    func question(of fetch: RunningFetch) -> PendingQuestion? { fetch.question.flatMap { pending[$0] } }

    func asked(_ id: ConnectionID) -> AskedClient {
        if let known = asked[id] { return known }
        let new = AskedClient()
        asked[id] = new
        return new
    }

    // MARK: Pending questions

    func open(
        _ content: PendingQuestion.Content, _ id: String, for fetch: RunningFetch, at place: PendingQuestion.Place
    ) {
        (fetch.question, fetch.waitTimer) = (id, nil)
        pending[id] = PendingQuestion(id: id, fetch: fetch.id, content: content, since: context.now, place: place)
    }

    /// Records the request that delivers a question; its reply is the answer.
    func setRequest(_ number: Int, of id: String, at connection: ClientConnection) {
        pending[id]?.request = number
        asked(connection.id).requests[number] = id
    }

    /// - Parameter isQueued: whether the question waits in the queue of an agent.
    func setDeadline(_ limit: Duration, of id: String, isQueued: Bool = false) {
        pending[id]?.deadline?.cancel()
        pending[id]?.deadline = reference.after(limit) { $0.deadlineHasCome(of: id, isQueued: isQueued) }
    }

    private func deadlineHasCome(of id: String, isQueued: Bool) {
        guard let question = pending[id] else { return }
        if isQueued, let fetch = fetches[question.fetch],
            let failure = fetches.table.queueTimeout(of: question.fetch, fetches.environment)
        {
            return fetches.cancel(fetch, failure)
        }
        if question.challenge != nil {
            audit.counters.challengesTimedOut += 1
            context.log.info("challenge timed out", metadata: ["challenge": "\(id)"])
        }
        advanceQuestion(id, because: .deadline)  // guard: challenge-deadline
    }

    /// Removes a question from the table, and withdraws it from its respondent.
    /// - Returns: the question for the first caller; `nil` if the question is already closed.
    func close(_ id: String) -> PendingQuestion? {
        guard let question = pending.removeValue(forKey: id) else { return nil }
        question.deadline?.cancel()
        recall(question)
        if let fetch = fetches[question.fetch] {
            fetch.question = nil
            if question.challenge != nil || question.isConsent { fetch.challengeTime += context.now - question.since }
        }
        return question
    }

    private func recall(_ question: PendingQuestion) {
        let id = question.place.connection
        guard let respondent = asked[id] else { return }
        respondent.queue.remove(question.id)
        if let number = question.request, respondent.requests.removeValue(forKey: number) != nil {
            clients[id]?.withdraw(request: number)
        }
        scheduleDelivery(at: id)
    }

    /// Delivers queued questions in a later turn, because this connection may have room for them.
    func scheduleDelivery(at id: ConnectionID) {
        guard let respondent = asked[id], !respondent.queue.waiting.isEmpty else { return }
        reference.post { $0.deliverQueued(to: id) }
    }

    /// Moves a question to `agent`, because its agent has not answered.
    func move(_ question: PendingQuestion, to agent: ClientConnection) {
        var question = question
        recall(question)
        question.passedOn.insert(question.place.connection)
        (question.place, question.request) = (.agent(agent.id), nil)
        pending[question.id] = question
        put(question.id, to: agent)
    }

    // MARK: Unanswered questions

    /// Passes an unanswered question to the next respondent, or continues the fetch without an answer.
    func advanceQuestion(_ id: String, because reason: NoAnswer) {
        guard let question = pending[id], let fetch = fetches[question.fetch] else { return }
        switch question.content {
        case .challenge(let challenge): advanceQuestion(challenge, question, of: fetch, because: reason)
        case .consent: passOnConsent(question, of: fetch, because: reason)
        case .consultation: settle(id, answer: nil)
        case .body: supply(nil, id)
        }
    }

    /// Withdraws the question of a fetch that is being cancelled.
    func withdraw(of fetch: RunningFetch) {
        guard let question = question(of: fetch) else { return }
        if let challenge = question.challenge {
            takeBack(question, because: .cancelled)
            recordSilence(challenge, question, fetch, .cancelled)
            for id in question.passedOn { clients[id].map { question.notifyCancelled(.cancelled, $0) } }
        }
        _ = close(question.id)
    }

    /// Passes the questions at a connection that has ended, or has stopped being an agent or subscriber, to other
    /// respondents, or leaves them unanswered.
    func leave(
        _ connection: ClientConnection, because reason: NoAnswer,
        where matches: (PendingQuestion) -> Bool = { _ in true }
    ) {
        guard let respondent = asked[connection.id] else { return }
        let waiting = respondent.challenges.all.map(\.challengeID) + respondent.queue.waiting
        for id in waiting + respondent.requests.sorted(by: { $0.key < $1.key }).map(\.value) {
            guard let question = pending[id], matches(question) else { continue }
            advanceQuestion(id, because: reason)
        }
        scheduleDelivery(at: connection.id)
    }

    /// Removes a closed connection, whose fetches have already ended. Questions that it had as an agent move to the
    /// next agent.
    func forget(_ connection: ClientConnection) {
        leave(connection, because: .disconnected, where: \.isForAgent)
        asked[connection.id] = nil
    }

    // MARK: Subscriptions

    func subscribe(_ params: AuthSubscribe, _ connection: ClientConnection) {
        connection.profile.subscription = params.subscription(after: connection.profile.subscription?.delivery)
        scheduleDelivery(at: connection.id)
    }

    /// `auth/unsubscribe`: running fetches continue without answers from this client.
    func unsubscribe(_ connection: ClientConnection) {
        connection.profile.subscription = nil
        leave(connection, because: .unregistered, where: \.isForSubscriber)
    }

    /// `agent/unregister`: open questions move to the next agent.
    func unregisterAgent(_ connection: ClientConnection) throws {
        guard let agent = connection.profile.agent else {
            throw RPCError(.invalidRequest, "this connection is not an agent")
        }
        connection.profile.agent = nil
        context.log.notice("agent unregistered", metadata: ["agent": "a\(agent.number)"])
        leave(connection, because: .unregistered, where: \.isForAgent)
        fetches.desks.programPrompts.leave(connection, because: .unregistered)
    }

    /// `auth/listPending`: returns the open challenges of this connection.
    func listPending(_ connection: ClientConnection) -> [AuthChallengeParams] { asked(connection.id).challenges.all }
}

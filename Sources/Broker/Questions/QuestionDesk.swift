internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The desk of everything that the broker asks: challenges, consent, consultations and bodies of requests. It owns the one table
/// of pending questions, each with its deadline, and what each connection is asked. It reports every answer, or that there is
/// none, to the fetch table; whoever takes a question out of the table decides what comes of it.
final class QuestionDesk {
    let context: DeskContext
    let audit: AuditRecorder
    let clients: ClientRegistry
    let bodies: BodyDesk
    let prompts: PromptDesk
    unowned let fetches: FetchRouter
    let way: WayBack<QuestionDesk>
    private var pending: [String: PendingQuestion] = [:]
    private var asked: [ConnectionID: AskedClient] = [:]
    var parked = ParkedFetches()

    init(_ fetches: FetchRouter, _ bodies: BodyDesk, _ way: WayBack<QuestionDesk>) {
        (context, audit, clients) = (fetches.context, fetches.audit, fetches.clients)
        (self.bodies, self.fetches, self.way) = (bodies, fetches, way)
        prompts = PromptDesk(context, audit)
    }

    subscript(id: String) -> PendingQuestion? { pending[id] }

    /// In the order of their fetches.
    func all(where isMeant: (PendingQuestion) -> Bool) -> [PendingQuestion] {
        pending.values.filter(isMeant).sorted { $0.fetch.number < $1.fetch.number }
    }

    func question(of fetch: RunningFetch) -> PendingQuestion? { fetch.question.flatMap { pending[$0] } }

    func asked(_ id: ConnectionID) -> AskedClient {
        if let known = asked[id] { return known }
        let new = AskedClient()
        asked[id] = new
        return new
    }

    // MARK: The table

    func open(
        _ content: PendingQuestion.Content, _ id: String, for fetch: RunningFetch, at place: PendingQuestion.Place
    ) {
        (fetch.question, fetch.waitTimer) = (id, nil)
        pending[id] = PendingQuestion(id: id, fetch: fetch.id, content: content, since: context.now, place: place)
    }

    func setPlace(_ place: PendingQuestion.Place, of id: String) { pending[id]?.place = place }

    /// The question went out as this request; the reply will be to it.
    func setRequest(_ number: Int, of id: String, at connection: ClientConnection) {
        pending[id]?.request = number
        asked(connection.id).requests[number] = id
    }

    /// - Parameter isQueued: at an agent, behind those of others.
    func setDeadline(_ limit: Duration, of id: String, isQueued: Bool = false) {
        pending[id]?.deadline?.cancel()
        pending[id]?.deadline = way.after(limit) { $0.deadlineHasCome(of: id, isQueued: isQueued) }
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
        passOn(id, because: .deadline)
    }

    /// Takes the question off the table, and away from whoever has it. The first caller gets it; for every other one there is
    /// none.
    func close(_ id: String) -> PendingQuestion? {
        guard let question = pending.removeValue(forKey: id) else { return nil }
        question.deadline?.cancel()
        recall(question)
        if case .parked(let token) = question.place { unpark(token) }
        if let fetch = fetches[question.fetch] {
            fetch.question = nil
            if question.challenge != nil || question.isConsent { fetch.challengeTime += context.now - question.since }
        }
        return question
    }

    private func recall(_ question: PendingQuestion) {
        guard let id = question.place.connection, let respondent = asked[id] else { return }
        respondent.queue.remove(question.id)
        if let number = question.request, respondent.requests.removeValue(forKey: number) != nil {
            clients[id]?.withdraw(request: number)
        }
        noteRoom(at: id)
    }

    /// A question left this connection: there may be room for the next one, once everything else is done.
    func noteRoom(at id: ConnectionID) {
        guard let respondent = asked[id], !respondent.queue.waiting.isEmpty else { return }
        way.post { $0.deliverQueued(to: id) }
    }

    /// The agent that has it has no answer, and gets it no more.
    func move(_ question: PendingQuestion, to agent: ClientConnection) {
        var question = question
        recall(question)
        question.place.connection.map { _ = question.passedOn.insert($0) }
        (question.place, question.request) = (.agent(agent.id), nil)
        pending[question.id] = question
        put(question.id, to: agent)
    }

    // MARK: Without an answer

    /// Whoever has the question has no answer: the next one gets it, or the fetch continues without.
    func passOn(_ id: String, because reason: NoAnswer) {
        guard let question = pending[id], let fetch = fetches[question.fetch] else { return }
        switch question.content {
        case .challenge(let challenge): passOn(challenge, question, of: fetch, because: reason)
        case .consent: passOnConsent(question, of: fetch, because: reason)
        case .consultation: settle(id, answer: nil)
        case .body: give(nil, id)
        }
    }

    /// The fetch is over: nobody's answer is wanted any longer.
    func withdraw(of fetch: RunningFetch) {
        guard let question = question(of: fetch) else { return }
        if let challenge = question.challenge {
            takeBack(question, because: .cancelled)
            recordSilence(challenge, question, fetch, .cancelled)
            for id in question.passedOn { clients[id].map { question.tellCancelled(.cancelled, $0) } }
        }
        _ = close(question.id)
    }

    /// The connection has said its last word, or is no agent or subscriber any longer: others are asked, or nobody.
    func leave(
        _ connection: ClientConnection, because reason: NoAnswer,
        where isMeant: (PendingQuestion) -> Bool = { _ in true }
    ) {
        guard let respondent = asked[connection.id] else { return }
        let waiting = respondent.challenges.all.map(\.challengeID) + respondent.queue.waiting
        for id in waiting + respondent.requests.sorted(by: { $0.key < $1.key }).map(\.value) {
            guard let question = pending[id], isMeant(question) else { continue }
            passOn(id, because: reason)
        }
        noteRoom(at: connection.id)
    }

    /// The connection has ended, and with it its fetches.
    func forget(_ connection: ClientConnection) {
        leave(connection, because: .disconnected, where: \.isForAgent)
        asked[connection.id] = nil
    }
}

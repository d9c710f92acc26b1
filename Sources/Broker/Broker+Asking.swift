internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Putting questions: to the client of a fetch, to agents, and back.
extension Router {
    /// Rule 15: the subscribed client first.
    func askClient(_ challenge: Challenge, for fetch: RunningFetch) {
        guard let owner = fetch.owner, let connection = clients[owner.connection],
            challenge.isForHandler
                ? !connection.hasInputEnded : fetch.delivery == .result || connection.isSubscribed
        else { return perform(table.notAsked(fetch.id, because: .unsubscribed, environment)) }
        guard mayAsk(for: fetch) else { return }
        let challengeID = RandomText.make128Bits()
        open(challenge, challengeID, for: fetch, at: .client(connection.id))
        put(challengeID, to: connection)
    }

    /// Then the agents, in their order.
    func askAgents(_ challenge: Challenge, for fetch: RunningFetch) {
        guard let agent = nextAgent(for: challenge, of: fetch, after: []) else {
            return perform(table.notAsked(fetch.id, because: .noAgent, environment))
        }
        guard !prompts.stopped.contains(fetch.program) else { return leaveUnasked(challenge, of: fetch) }
        guard !isJustCancelled(challenge, for: fetch), mayPrompt(about: challenge, for: fetch), mayAsk(for: fetch)
        else { return }
        let challengeID = RandomText.make128Bits()
        open(challenge, challengeID, for: fetch, at: .agent(agent.id))
        put(challengeID, to: agent)
    }

    private func nextAgent(
        for challenge: Challenge, of fetch: RunningFetch, after passed: Set<ConnectionID>
    ) -> ClientConnection? {
        clients.agents(after: passed).first { $0.agent?.covers(challenge.protectionSpace) ?? false }
    }

    private func open(
        _ challenge: Challenge, _ challengeID: String, for fetch: RunningFetch, at place: OpenQuestion.Place
    ) {
        tellOutcome(.superseded, of: fetch)
        fetch.state = .challenged(challengeID: challengeID, since: clock.now)
        audit.counters.challengesAsked += 1
        log.info(
            "challenge",
            metadata: [
                "fetch": "\(fetch.id)", "method": "\(challenge.protectionSpace.authenticationMethod.rawValue)",
                "failures": "\(challenge.previousFailureCount)",
            ])
        questions[challengeID] = OpenQuestion(fetch: fetch.id, challenge: challenge, place: place)
    }

    func deliver(
        _ challengeID: String, _ question: OpenQuestion, of fetch: RunningFetch, to connection: ClientConnection
    ) {
        let params = params(challengeID, question.challenge, of: fetch)
        audit.recordQuestion(question.challenge, for: fetch, to: connection, at: question.place.word)
        if question.delivery(in: fetch) == .notification {
            connection.challenges.add(params, request: nil)
            connection.notify(.authPending, params.json)
        } else {
            connection.challenges.add(params, request: connection.request(.authChallenge, params.json))
        }
    }

    private func params(_ challengeID: String, _ challenge: Challenge, of fetch: RunningFetch) -> AuthChallengeParams {
        let requester = fetch.owner.flatMap { clients[$0.connection]?.requester }
        var params = AuthChallengeParams(
            challengeID: challengeID, fetchID: fetch.id.description, challenge: challenge,
            requester: requester ?? Requester(name: nil, pid: 0, subject: Subject(.unknown, "")),
            deadlineMs: options.challengeDeadline.wholeMilliseconds)
        params.handledRequest = challenge.isForHandler ? fetch.owner?.requestID : nil
        return params
    }

    /// Whether one more question may wait for an answer on behalf of this fetch. If not, the fetch ends.
    func mayAsk(for fetch: RunningFetch) -> Bool {
        guard let owner = fetch.owner, let connection = clients[owner.connection] else { return true }
        let open = connection.fetches.count { id in
            if case .challenged? = fetches[id]?.state { true } else { false }
        }
        guard open >= Limits.openChallenges else { return true }
        let text = "\(open) questions of this connection wait for an answer. Answer some first."
        cancel(fetch, FetchFailure(.busy, text))
        return false
    }

    // MARK: Taking questions back

    /// Whoever has the question has no answer: the next agent gets it, or the fetch continues without.
    func passOn(_ challengeID: String, because reason: NoAnswer) {
        guard var question = questions[challengeID], let fetch = fetches[question.fetch] else { return }
        if reason.isSilence {
            takeBack(challengeID, question, because: .deadline)
            recordSilence(question, fetch, reason)
        }
        if case .parked(let token) = question.place {
            let entry = parked.removeValue(forKey: token)
            entry.flatMap { clients[$0.connection] }.map { noteRoom(at: $0) }
            _ = close(challengeID)
            return cancel(
                fetch, FetchFailure(.challengeTimedOut, "Nobody came back with the answer to the challenge in time."))
        }
        if case .agent(let id) = question.place {
            question.passedOn.insert(id)
            if let next = nextAgent(for: question.challenge, of: fetch, after: question.passedOn) {
                question.place = .agent(next.id)
                questions[challengeID] = question
                clients[id].map { noteRoom(at: $0) }
                return put(challengeID, to: next)
            }
        }
        guard reason.isSilence else { return resolve(challengeID, with: .useDefault, by: question.place.word) }
        guard let question = close(challengeID) else { return }
        announceResolution(
            challengeID, question, action: nil, by: reason == .deadline ? "deadline" : question.place.word)
        perform(table.unanswered(question.fetch, environment))
    }

    /// The fetch is over: nobody's answer is wanted any longer.
    func withdraw(_ challengeID: String, because reason: WithdrawalReason) {
        guard let question = questions[challengeID] else { return }
        takeBack(challengeID, question, because: reason)
        if let fetch = fetches[question.fetch] { recordSilence(question, fetch, .cancelled) }
        for id in question.passedOn { clients[id].map { notifyCancelled(challengeID, question, reason, to: $0) } }
        if case .parked(let token) = question.place, let entry = parked.removeValue(forKey: token) {
            clients[entry.connection].map { noteRoom(at: $0) }
        }
        _ = close(challengeID)
    }

    func takeBack(_ challengeID: String, _ question: OpenQuestion, because reason: WithdrawalReason) {
        guard let id = question.place.connection, let connection = clients[id] else { return }
        connection.queue.remove(challengeID)
        // After its deadline a question counts as answered; with its fetch it is gone.
        let pending =
            reason == .deadline
            ? connection.challenges.settle(challengeID) : connection.challenges.withdraw(challengeID)
        guard let pending else { return }
        if let request = pending.request { connection.withdraw(request: request) }
        if reason == .cancelled || pending.request == nil {
            notifyCancelled(challengeID, question, reason, to: connection)
        }
    }

    func notifyCancelled(
        _ challengeID: String, _ question: OpenQuestion, _ reason: WithdrawalReason, to connection: ClientConnection
    ) {
        connection.notify(
            .authCancelled,
            [
                "challengeId": .string(challengeID), "fetchId": .string("\(question.fetch)"),
                "reason": .string(reason.rawValue),
            ])
    }

    /// Takes the question off the table. The first caller gets it; for every other one there is none.
    func close(_ challengeID: String) -> OpenQuestion? {
        guard let question = questions.removeValue(forKey: challengeID) else { return nil }
        question.deadline?.cancel()
        if let id = question.place.connection, let connection = clients[id] {
            connection.queue.remove(challengeID)
            noteRoom(at: connection)
        }
        if let fetch = fetches[question.fetch], case .challenged(_, let since) = fetch.state {
            fetch.challengeTime += clock.now - since
        }
        return question
    }

    /// Somebody, or the clock, has answered.
    func resolve(_ challengeID: String, with answer: ChallengeAnswer, by name: String) {
        guard let question = close(challengeID) else { return }
        announceResolution(challengeID, question, action: answer.action, by: name)
        guard let fetch = fetches[question.fetch] else { return }
        audit.recordAnswer(answer, to: question.challenge, for: fetch, by: name, agent(of: question))
        fetch.openAnswer = OpenAnswer(challengeID, question, answer)
        perform(table.answered(answer, for: question.fetch, environment))
    }

    private func recordSilence(_ question: OpenQuestion, _ fetch: RunningFetch, _ reason: NoAnswer) {
        audit.recordSilence(
            reason.rawValue, after: question.challenge, for: fetch, at: question.place.word, agent(of: question))
    }

    private func agent(of question: OpenQuestion) -> ClientConnection? {
        if case .agent(let id) = question.place { clients[id] } else { nil }
    }

    /// The connection has said its last word, or is no agent or subscriber any longer: others are asked, or nobody.
    func settleQuestions(
        of connection: ClientConnection, because reason: NoAnswer,
        where isMeant: (OpenQuestion) -> Bool = { _ in true }
    ) {
        for id in connection.challenges.all.map(\.challengeID) + connection.queue.waiting {
            guard let question = questions[id], isMeant(question) else { continue }
            passOn(id, because: reason)
        }
    }

    /// It can say neither yes nor no any longer.
    func settleConsultations(of connection: ClientConnection) {
        for (request, id) in connection.consultations {
            connection.withdraw(request: request)
            if case .needingBody? = fetches[id]?.state {
                give(nil, to: id, of: connection, request)
            } else {
                settle(id, of: connection, request, answer: nil)
            }
        }
    }
}

extension OpenQuestion.Place {
    var word: String {
        switch self {
        case .client, .parked: "client"
        case .agent: "agent"
        }
    }
}

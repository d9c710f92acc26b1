internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// A question about the use of what is kept, and who has it.
struct OpenConfirmation {
    let fetch: FetchID
    let request: ConsentRequest
    var agent: ConnectionID
    /// The number of the request at the agent, once it is delivered.
    var number: Int?
    /// See `OpenQuestion.deadline`.
    var deadline: DeadlineTimer?
    /// Agents that have had it, and have no answer.
    var passedOn: Set<ConnectionID> = []
}

/// Asking an agent whether a program may use what is kept, and what was granted.
extension Router {
    /// On whose behalf a client speaks now; what it was when it came is asked about no more where it has become another program.
    func subjectNow(of connection: ClientConnection) -> Subject {
        let first = connection.peer.subject
        guard options.sharing == .ask || first.isSandboxed else { return first }
        let now = connection.peer.subjectNow()
        guard first.strength == .none || first.mayBeStill(now) else {
            log.notice(
                "a client is not the program any more that it was when it connected",
                metadata: ["pid": "\(connection.peer.pid)"])
            return .unknown
        }
        return first
    }

    func confirm(_ request: ConsentRequest, for fetch: RunningFetch) {
        guard let agent = nextConfirmer(of: fetch, after: []) else {
            log.notice(
                "nobody can be asked for consent: no agent answers auth/confirm", metadata: ["fetch": "\(fetch.id)"])
            recordConsent(nil, request, fetch, by: "nobody", agent: nil)
            return perform(table.confirmed(nil, for: fetch.id, environment))
        }
        guard mayConfirm(request, for: fetch) else {
            recordConsent(nil, request, fetch, by: "nobody", agent: nil)
            return perform(table.confirmed(nil, for: fetch.id, environment))
        }
        let confirmID = RandomText.make128Bits()
        fetch.state = .confirming(confirmID, since: clock.now)
        confirmations[confirmID] = OpenConfirmation(fetch: fetch.id, request: request, agent: agent.id)
        put(confirmID, to: agent)
    }

    /// Nobody consents to what its own process wants.
    private func nextConfirmer(of fetch: RunningFetch, after passed: Set<ConnectionID>) -> ClientConnection? {
        let asker = fetch.owner.flatMap { clients[$0.connection]?.peer.pid }
        return clients.agents(after: passed).first { $0.agent?.asksConfirm == true && $0.peer.pid != asker }
    }

    func send(_ confirmID: String, to agent: ClientConnection) {
        guard let request = confirmations[confirmID]?.request,
            let fetch = confirmations[confirmID].flatMap({ fetches[$0.fetch] })
        else { return }
        let requester = fetch.owner.flatMap { clients[$0.connection]?.requester }
        let params = AuthConfirmParams(
            confirmID: confirmID, fetchID: "\(fetch.id)",
            requester: requester ?? Requester(name: nil, pid: 0, subject: request.subject), request: request,
            deadlineMs: options.challengeDeadline.wholeMilliseconds)
        let number = agent.request(.authConfirm, params.json)
        agent.confirmations[number] = confirmID
        confirmations[confirmID]?.number = number
        audit.record(.consentAsked, fetch.cause) { event in
            event.fill(request, fetch)
            event.agent = agent.auditClient
        }
    }

    // MARK: Answers

    /// What is not understood is no consent; whoever cannot answer leaves it to the next.
    func receiveConsent(
        _ reply: ConnectionMachine.Reply, _ confirmID: String, _ number: Int, from connection: ClientConnection
    ) {
        connection.confirmations[number] = nil
        if case .result(let json) = reply, let answer = try? ConfirmReply(json) {
            let fetch = confirmations[confirmID].flatMap { fetches[$0.fetch] }
            if answer.stopsAsking, let fetch { stopAsking(for: fetch.program, at: connection, answered: confirmID) }
            return settleConfirmation(confirmID, answer.consent, by: "agent")
        }
        log.warning(
            "an agent has not answered whether a program may use something", metadata: ["confirm": "\(confirmID)"])
        passOnConfirmation(confirmID, because: "nobody")
    }

    /// The agent is none any longer.
    func settleConfirmations(of connection: ClientConnection) {
        let open = connection.confirmations
        connection.confirmations = [:]
        for confirmID in connection.queue.waiting where confirmations[confirmID] != nil {
            passOnConfirmation(confirmID, because: "nobody")
        }
        for (number, confirmID) in open {
            connection.withdraw(request: number)
            passOnConfirmation(confirmID, because: "nobody")
        }
    }

    /// Whoever has the question has no answer: the next agent gets it, with time of its own.
    func passOnConfirmation(_ confirmID: String, because reason: String) {
        guard var open = confirmations[confirmID], let fetch = fetches[open.fetch] else { return }
        open.passedOn.insert(open.agent)
        guard let next = nextConfirmer(of: fetch, after: open.passedOn) else {
            return settleConfirmation(confirmID, nil, by: reason)
        }
        takeBack(confirmID, open)
        (open.agent, open.number) = (next.id, nil)
        confirmations[confirmID] = open
        put(confirmID, to: next)
    }

    /// The first answer counts.
    func settleConfirmation(_ confirmID: String, _ consent: Consent?, by name: String) {
        guard let open = take(confirmID), let fetch = fetches[open.fetch] else { return }
        recordConsent(consent, open.request, fetch, by: name, agent: clients[open.agent]?.auditClient)
        if let consent { noteConsent(consent, to: open.request, of: fetch.program) }
        log.info("consent", metadata: ["fetch": "\(open.fetch)", "answer": "\(consent?.rawValue ?? "none")"])
        perform(table.confirmed(consent, for: open.fetch, environment))
    }

    /// The fetch is over: nobody's answer is wanted any longer.
    func withdrawConfirmation(_ confirmID: String) { _ = take(confirmID) }

    /// Takes the question off the table, and away from whoever has it.
    private func take(_ confirmID: String) -> OpenConfirmation? {
        guard let open = confirmations.removeValue(forKey: confirmID) else { return nil }
        open.deadline?.cancel()
        takeBack(confirmID, open)
        if let fetch = fetches[open.fetch], case .confirming(_, let since) = fetch.state {
            fetch.challengeTime += clock.now - since
        }
        return open
    }

    private func takeBack(_ confirmID: String, _ open: OpenConfirmation) {
        guard let agent = clients[open.agent] else { return }
        agent.queue.remove(confirmID)
        noteRoom(at: agent)
        guard let number = open.number, agent.confirmations.removeValue(forKey: number) != nil else { return }
        agent.withdraw(request: number)
    }

    private func recordConsent(
        _ consent: Consent?, _ request: ConsentRequest, _ fetch: RunningFetch, by name: String,
        agent: AuditEvent.Client?
    ) {
        audit.record(.consentAnswered, fetch.cause) { event in
            event.fill(request, fetch)
            event.action = consent?.rawValue
            event.by = name
            event.agent = agent
        }
    }
}

extension AuditEvent {
    fileprivate mutating func fill(_ request: ConsentRequest, _ fetch: RunningFetch) {
        origin = fetch.origin.text
        space = SpacePattern(request.space)
        user = request.user
        source = request.source
        subject = request.subject.text
    }
}

internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Requests that are answered by a reply alone: for consent, to agents; for a yes or no and for a body, to the client of the
/// fetch.
extension QuestionDesk {
    // MARK: Consent

    /// Asks an agent whether a program may use a stored credential.
    func confirm(_ request: ConsentRequest, for fetch: RunningFetch) {
        let agent = clients.confirmer(for: fetch, after: [])
        if agent == nil {
            context.log.notice(
                "nobody can be asked for consent: no agent answers auth/confirm", metadata: ["fetch": "\(fetch.id)"])
        }
        guard let agent, prompts.mayConfirm(request, for: fetch.program) else {
            audit.recordConsent(nil, request, fetch, by: "nobody", nil)
            return fetches.report { $0.confirmed(nil, for: fetch.id, $1) }
        }
        let id = RandomText.make128Bits()
        open(.consent(request), id, for: fetch, at: .agent(agent.id))
        put(id, to: agent)
    }

    func send(_ request: ConsentRequest, _ id: String, of fetch: RunningFetch, to agent: ClientConnection) {
        let params = AuthConfirmParams(
            confirmID: id, fetchID: "\(fetch.id)",
            requester: clients.owner(of: fetch)?.requester ?? Requester(name: nil, pid: 0, subject: request.subject),
            request: request, deadlineMs: context.options.challengeDeadline.wholeMilliseconds)
        setRequest(agent.request(.authConfirm, params.json), of: id, at: agent)
        audit.recordConsentAsked(request, fetch, agent)
    }

    /// The next agent gets it, with time of its own.
    func passOnConsent(_ question: PendingQuestion, of fetch: RunningFetch, because reason: NoAnswer) {
        let passed = question.place.connection.map { question.passedOn.union([$0]) } ?? question.passedOn
        guard let next = clients.confirmer(for: fetch, after: passed) else {
            return settleConsent(question.id, nil, by: reason == .deadline ? "deadline" : "nobody")
        }
        move(question, to: next)
    }

    /// The first answer counts.
    func settleConsent(_ id: String, _ consent: Consent?, by name: String) {
        guard let question = close(id), case .consent(let request) = question.content,
            let fetch = fetches[question.fetch]
        else { return }
        audit.recordConsent(consent, request, fetch, by: name, clients.agent(of: question))
        if let consent { prompts.note(consent, to: request, of: fetch.program) }
        context.log.info("consent", metadata: ["fetch": "\(fetch.id)", "answer": "\(consent?.rawValue ?? "none")"])
        fetches.report { $0.confirmed(consent, for: fetch.id, $1) }
    }

    // MARK: Consultations and bodies

    func consult(_ consultation: Consultation, for fetch: RunningFetch) {
        guard let connection = clients.owner(of: fetch), connection.isSubscribed, !connection.hasInputEnded else {
            return fetches.report { $0.consulted(nil, for: fetch.id, $1) }
        }
        let limit = context.options.challengeDeadline
        let content = PendingQuestion.Content.consultation(consultation)
        switch consultation {
        case .canAuthenticate(let space):
            ask(connection, .authCanAuthenticate, ["protectionSpace": space.json], content, for: fetch, limit)
        case .useStorage:
            ask(connection, .authUseStorage, [:], content, for: fetch, limit)
        case .approveRedirect(let redirect):
            let params: JSON = [
                "status": .integer(redirect.status), "from": .string(redirect.from), "to": .string(redirect.to),
                "method": .string(redirect.method),
            ]
            let limit = min(limit, Limits.redirectApproval)
            ask(connection, .fetchApproveRedirect, params, content, for: fetch, limit)
        }
    }

    func askForBody(of fetch: RunningFetch) {
        bodies.releaseSource(of: fetch)
        guard let connection = clients.owner(of: fetch), !connection.hasInputEnded else {
            return fetches.report { $0.given(nil, for: fetch.id, $1) }
        }
        ask(connection, .fetchNeedBody, [:], .body, for: fetch, context.options.challengeDeadline)
    }

    /// At once, however much the client is asked already: it answers by itself.
    private func ask(
        _ connection: ClientConnection, _ method: BrokerMethodName, _ params: JSON,
        _ content: PendingQuestion.Content, for fetch: RunningFetch, _ limit: Duration
    ) {
        let id = "\(fetch.id)"
        open(content, id, for: fetch, at: .client(connection.id))
        let names: JSON = ["fetchId": .string(id)]
        setRequest(connection.request(method, names.adding(params)), of: id, at: connection)
        setDeadline(limit, of: id)
    }

    /// The first answer counts. `nil` stands for silence, and for a malformed answer.
    func settle(_ id: String, answer: Bool?) {
        guard let question = close(id) else { return }
        fetches.report { $0.consulted(answer, for: question.fetch, $1) }
    }

    /// The first answer counts. Silence, and what is not understood, gives no body.
    func give(_ body: NeededBody?, _ id: String) {
        guard let question = close(id), let fetch = fetches[question.fetch] else { return }
        guard let body, let connection = clients.owner(of: fetch) else {
            return fetches.report { $0.given(nil, for: fetch.id, $1) }
        }
        do throws(FetchFailure) {
            let given = try bodies.take(body, for: fetch, of: connection)
            fetches.report { $0.given(given, for: fetch.id, $1) }
        } catch {
            fetches.cancel(fetch, error)
        }
    }

    // MARK: Replies

    func receive(_ reply: ConnectionMachine.Reply, _ id: String, from connection: ClientConnection) {
        guard let question = self[id] else { return }
        switch question.content {
        case .consent: receiveConsent(reply, question, from: connection)
        case .consultation(let consultation): settle(id, answer: answer(reply, to: consultation, question.fetch))
        case .body:
            if case .result(let json) = reply, let body = try? NeededBody(json) { return give(body, id) }
            context.log.warning("a client has given no body", metadata: ["fetch": "\(question.fetch)"])
            give(nil, id)
        case .challenge: break
        }
    }

    /// What is not understood is no consent; whoever cannot answer leaves it to the next.
    private func receiveConsent(
        _ reply: ConnectionMachine.Reply, _ question: PendingQuestion, from connection: ClientConnection
    ) {
        if case .result(let json) = reply, let answer = try? ConfirmReply(json) {
            let fetch = fetches[question.fetch]
            if answer.stopsAsking, let fetch { stopAsking(for: fetch.program, at: connection, answered: question.id) }
            return settleConsent(question.id, answer.consent, by: "agent")
        }
        context.log.warning(
            "an agent has not answered whether a program may use something", metadata: ["confirm": "\(question.id)"])
        passOn(question.id, because: .failed)
    }

    private func answer(_ reply: ConnectionMachine.Reply, to consultation: Consultation, _ id: FetchID) -> Bool? {
        switch reply {
        case .result(let json):
            let member = if case .approveRedirect = consultation { "approve" } else { "answer" }
            if let reply = try? ConsultationReply(json, member) { return reply.answer }
        case .error(let error) where error.code == ErrorKind.methodNotFound.code:
            // Rule 3: not implemented means yes, but for what a connection asks.
            return !consultation.needsAnswer
        case .error, .broken:
            break
        }
        context.log.warning(
            "malformed answer of a client; nothing that is stored is used", metadata: ["fetch": "\(id)"])
        return nil
    }
}

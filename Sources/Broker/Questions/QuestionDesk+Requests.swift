internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Handles questions that are answered only by a reply: consent prompts, which go to agents, and consultations and
/// requests for the body, which go to the client of the fetch.
extension QuestionDesk {
    // MARK: Consent

    /// Asks an agent whether a program may use a stored credential.
    func confirm(_ request: ConsentRequest, for fetch: RunningFetch) {
        let agent = clients.confirmer(for: fetch, after: [])
        if agent == nil {
            context.log.notice(
                "cannot ask for consent: no agent supports auth/confirm", metadata: ["fetch": "\(fetch.id)"])
        }
        guard let agent, prompts.mayConfirm(request, for: fetch.program) else {
            audit.recordConsent(nil, request, fetch, by: "nobody", nil)
            return fetches.report(.confirmed(nil), of: fetch.id)
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

    /// Passes a consent prompt to the next agent, with a new deadline.
    func passOnConsent(_ question: PendingQuestion, of fetch: RunningFetch, because reason: NoAnswer) {
        let passed = question.passedOn.union([question.place.connection])
        guard let next = clients.confirmer(for: fetch, after: passed) else {
            return settleConsent(question.id, nil, by: reason == .deadline ? "deadline" : "nobody")
        }
        move(question, to: next)
    }

    /// Closes a consent prompt, and passes the answer to the fetch. No effect if the prompt is already closed.
    /// - Parameter consent: `nil` for no answer.
    func settleConsent(_ id: String, _ consent: Consent?, by name: String) {
        guard let question = close(id), case .consent(let request) = question.content,
            let fetch = fetches[question.fetch]
        else { return }
        audit.recordConsent(consent, request, fetch, by: name, clients.agent(of: question))
        if let consent { prompts.record(consent, to: request, of: fetch.program) }
        context.log.info(
            "consent prompt closed", metadata: ["fetch": "\(fetch.id)", "answer": "\(consent?.rawValue ?? "none")"])
        fetches.report(.confirmed(consent), of: fetch.id)
    }

    // MARK: Consultations and bodies

    func consult(_ consultation: Consultation, for fetch: RunningFetch) {
        guard let connection = clients.owner(of: fetch), connection.isSubscribed else {
            return fetches.report(.consulted(nil), of: fetch.id)
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
            return fetches.report(.supplied(nil), of: fetch.id)
        }
        ask(connection, .fetchNeedBody, [:], .body, for: fetch, context.options.challengeDeadline)
    }

    /// Sends a question at once, regardless of `maxPending`, because the client answers it without a prompt.
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

    /// Closes a consultation, and passes the answer to the fetch. No effect if the consultation is already closed.
    /// - Parameter answer: `nil` for no answer or a malformed one.
    func settle(_ id: String, answer: Bool?) {
        guard let question = close(id) else { return }
        fetches.report(.consulted(answer), of: question.fetch)
    }

    /// Closes a request for the body, and passes the body to the fetch. No effect if the request is already closed.
    /// - Parameter body: `nil` for no answer or a malformed one.
    func supply(_ body: ResentBody?, _ id: String) {
        guard let question = close(id), let fetch = fetches[question.fetch] else { return }
        guard let body, let connection = clients.owner(of: fetch) else {
            return fetches.report(.supplied(nil), of: fetch.id)
        }
        do throws(FetchFailure) {
            let supplied = try bodies.take(body, for: fetch, of: connection)
            fetches.report(.supplied(supplied), of: fetch.id)
        } catch {
            fetches.cancel(fetch, error)
        }
    }

    // MARK: Replies

    func receive(_ reply: ConnectionMachine.Reply, _ id: String, from connection: ClientConnection) {
        guard let question = self[id] else {
            return fetches.desks.programPrompts.receive(reply, id, from: connection)
        }
        switch question.content {
        case .consent: receiveConsent(reply, question, from: connection)
        case .consultation(let consultation): settle(id, answer: answer(reply, to: consultation, question.fetch))
        case .body:
            if case .result(let json) = reply, let body = try? ResentBody(json) { return supply(body, id) }
            context.log.warning("a client did not resend the request body", metadata: ["fetch": "\(question.fetch)"])
            supply(nil, id)
        case .challenge: break
        }
    }

    /// Handles the reply to a consent prompt. After an error or a malformed reply, the next agent is asked.
    private func receiveConsent(
        _ reply: ConnectionMachine.Reply, _ question: PendingQuestion, from connection: ClientConnection
    ) {
        if case .result(let json) = reply, let answer = try? ConfirmReply(json) {
            let fetch = fetches[question.fetch]
            if answer.stopsAsking, let fetch { stopAsking(for: fetch.program, at: connection, answered: question.id) }
            return settleConsent(question.id, answer.consent, by: "agent")
        }
        context.log.warning(
            "an agent failed to answer a consent prompt", metadata: ["confirm": "\(question.id)"])
        advanceQuestion(question.id, because: .failed)
    }

    private func answer(_ reply: ConnectionMachine.Reply, to consultation: Consultation, _ id: FetchID) -> Bool? {
        switch reply {
        case .result(let json):
            let member = if case .approveRedirect = consultation { "approve" } else { "answer" }
            if let reply = try? ConsultationReply(json, member) { return reply.answer }
        case .error(let error) where error.code == ErrorKind.methodNotFound.code:
            // SEMANTICS rule 3: an unsupported method means yes, except for certificates and redirects.
            return !consultation.needsAnswer
        case .error, .broken:
            break
        }
        context.log.warning("no valid answer from a client to a consultation", metadata: ["fetch": "\(id)"])
        return nil
    }
}

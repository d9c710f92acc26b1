internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// What comes back: replies to challenges, `auth/respond`, the second half of a fetch, and answers of yes or no.
extension Router {
    /// The reply to a request of ours.
    func receiveReply(_ reply: ConnectionMachine.Reply, to request: Int, from connection: ClientConnection) {
        if let confirmID = connection.confirmations[request] {
            return receiveConsent(reply, confirmID, request, from: connection)
        }
        if let id = connection.consultations[request] {
            if case .needingBody? = fetches[id]?.state {
                return give(neededBody(reply, id), to: id, of: connection, request)
            }
            return settle(id, of: connection, request, answer: consultationAnswer(reply, id, fetches[id]?.consultation))
        }
        guard let challengeID = connection.challenges.challengeID(ofRequest: request),
            connection.challenges.settle(challengeID) != nil
        else { return }
        switch reply {
        case .result(let json):
            do throws(InvalidParams) {
                // Only a person who is asked for all programs can say which of them is to be asked about no more.
                let answer = isForAgent(challengeID) ? try AgentAnswer(json) : AgentAnswer(try ChallengeAnswer(json))
                accept(answer, to: challengeID, from: connection)
            } catch {
                refuse(challengeID, error)
            }
        case .error(let error):
            receive(error, challengeID, from: connection)
        // Security rule P13. An agent's would be a cancel of all programs that ask the same.
        case .broken where !isForAgent(challengeID):
            accept(AgentAnswer(.cancel), to: challengeID, from: connection)
        case .broken:
            receive(RPCError(.invalidRequest, "malformed reply"), challengeID, from: connection)
        }
    }

    private func isForAgent(_ challengeID: String) -> Bool {
        if case .agent? = questions[challengeID]?.place { true } else { false }
    }

    /// Rule 26: what is not understood sends nothing. Whoever asked hears why.
    private func refuse(_ challengeID: String, _ problem: InvalidParams) {
        guard let question = close(challengeID) else { return }
        let text = "The answer to the challenge was not understood, and nothing was sent: \(problem.detail)."
        perform(table.abort(question.fetch, FetchFailure(.invalidAnswer, text), environment))
    }

    /// An error reply: "no such method" means that nobody handles challenges there. Any other is no answer.
    private func receive(_ error: RPCError, _ challengeID: String, from connection: ClientConnection) {
        switch error.code {
        case ErrorKind.cancelled.code: accept(AgentAnswer(.cancel), to: challengeID, from: connection)
        case ErrorKind.methodNotFound.code: accept(AgentAnswer(.useDefault), to: challengeID, from: connection)
        default:
            log.warning(
                "a client failed to answer a challenge",
                metadata: ["challenge": "\(challengeID)", "code": "\(error.code)"])
            passOn(challengeID, because: .failed)
        }
    }

    /// `auth/respond`.
    func respond(_ params: AuthRespondParams, of connection: ClientConnection) throws -> JSON {
        guard connection.challenges.isOpen(params.challengeID) else {
            return connection.challenges.verdict(onLateAnswer: params.challengeID).json
        }
        guard let answer = params.answer else {
            return AuthRespondResult.invalid(problem: params.problem ?? "not an answer").json
        }
        guard !answer.stopsAsking || isForAgent(params.challengeID) else {
            return AuthRespondResult.invalid(problem: "answer.stopAsking is for agents").json
        }
        guard let pending = connection.challenges.settle(params.challengeID) else {
            return AuthRespondResult.gone.json
        }
        if let request = pending.request { connection.withdraw(request: request) }
        accept(answer, to: params.challengeID, from: connection)
        return AuthRespondResult.accepted.json
    }

    private func accept(_ given: AgentAnswer, to challengeID: String, from connection: ClientConnection) {
        guard let question = questions[challengeID] else { return }
        let (answer, program) = (given.answer, fetches[question.fetch]?.program ?? "")
        if given.stopsAsking { stopAsking(for: program, at: connection, answered: challengeID) }
        audit.counters.challengesAnswered += 1
        if answer == .cancel { notifyCancelled(challengeID, question, .cancelled, to: connection) }
        if answer == .useDefault, case .agent = question.place { return passOn(challengeID, because: .declined) }
        resolve(challengeID, with: answer, by: question.place.word)
        if case .agent = question.place { noteAnswer(answer, to: question, of: program) }
    }

    // MARK: Delivery as a result

    /// The first half of the fetch ends here; the second one names the token.
    func park(
        _ fetch: RunningFetch, _ challenge: Challenge, _ challengeID: String, of connection: ClientConnection
    ) {
        guard let owner = fetch.owner else { return }
        guard parked.count < Limits.parkedFetches else {
            let text = "More than \(Limits.parkedFetches) fetches wait for an answer. Answer some first."
            return cancel(fetch, FetchFailure(.busy, text))
        }
        guard parked.values.count(where: { $0.peer.pid == connection.peer.pid }) < Limits.parkedFetchesOfProgram else {
            let text = "\(Limits.parkedFetchesOfProgram) fetches of this program wait for an answer. Answer some first."
            return cancel(fetch, FetchFailure(.busy, text))
        }
        let token = RandomText.make128Bits()
        let params = AuthChallengeParams(
            challengeID: challengeID, fetchID: fetch.id.description, challenge: challenge,
            requester: connection.requester, deadlineMs: options.challengeDeadline.wholeMilliseconds)
        questions[challengeID]?.place = .parked(token: token)
        audit.recordQuestion(challenge, for: fetch, to: connection, at: "client")
        parked[token] = ParkedFetch(params: params, scope: TokenScope(connection))
        fetch.owner = nil
        disown(fetch, connection)
        fetch.holding = FetchHolding(in: connection.program.holdings, bytes: fetch.heldBytes)
        guard let call = owner.call else { return }
        connection.complete(
            call,
            .success(["state": "authRequired", "challenge": params.json, "resume": .string(token)]))
    }

    /// The second half: whoever brings it gets the result.
    func resumeFetch(
        _ call: ConnectionMachine.CallID, _ params: FetchResumeParams, from connection: ClientConnection
    ) throws {
        guard let entry = parked[params.resume], entry.isFor(connection),
            let question = questions[entry.params.challengeID], let fetch = fetches[question.fetch]
        else {
            throw RPCError(
                .unknownResume,
                "Nothing waits for this resume token: it was used before, or its deadline has passed. Start the fetch anew."
            )
        }
        parked[params.resume] = nil
        clients[entry.connection].map { noteRoom(at: $0) }
        fetch.owner = RunningFetch.Owner(
            connection: connection.id, call: call, requestID: connection.requestID(of: call))
        fetch.client = connection.auditClient
        own(fetch, connection)
        audit.counters.challengesAnswered += 1
        resolve(entry.params.challengeID, with: params.answer, by: "client")
    }

    // MARK: Yes or no

    func consult(_ consultation: Consultation, for fetch: RunningFetch) {
        guard let owner = fetch.owner, let connection = clients[owner.connection], connection.isSubscribed,
            !connection.hasInputEnded
        else {
            return perform(table.consulted(nil, for: fetch.id, environment))
        }
        fetch.consultation = consultation
        let names: JSON = ["fetchId": .string("\(fetch.id)")]
        let request: Int
        var limit = options.challengeDeadline
        switch consultation {
        case .canAuthenticate(let space):
            request = connection.request(.authCanAuthenticate, names.adding(["protectionSpace": space.json]))
        case .useStorage:
            request = connection.request(.authUseStorage, names)
        case .approveRedirect(let redirect):
            request = connection.request(
                .fetchApproveRedirect,
                names.adding([
                    "status": .integer(redirect.status), "from": .string(redirect.from), "to": .string(redirect.to),
                    "method": .string(redirect.method),
                ]))
            limit = min(limit, Limits.redirectApproval)
        }
        connection.consultations[request] = fetch.id
        let (id, client) = (fetch.id, connection.id)
        let deadline = after(limit) { broker in
            guard let connection = broker.clients[client] else { return }
            connection.withdraw(request: request)
            broker.settle(id, of: connection, request, answer: nil)
        }
        fetch.state = .consulting(connection.id, request: request, deadline: deadline)
    }

    /// The first answer counts. `nil` stands for silence, and for a malformed answer.
    func settle(_ id: FetchID, of connection: ClientConnection, _ request: Int, answer: Bool?) {
        guard connection.consultations.removeValue(forKey: request) != nil, let fetch = fetches[id],
            case .consulting(_, _, let deadline) = fetch.state
        else { return }
        deadline.cancel()
        perform(table.consulted(answer, for: id, environment))
    }

    func askForBody(of fetch: RunningFetch) {
        bodies.releaseSource(of: fetch)
        guard let owner = fetch.owner, let connection = clients[owner.connection], !connection.hasInputEnded else {
            return perform(table.given(nil, for: fetch.id, environment))
        }
        let request = connection.request(.fetchNeedBody, ["fetchId": .string("\(fetch.id)")])
        connection.consultations[request] = fetch.id
        let (id, client) = (fetch.id, connection.id)
        let deadline = after(options.challengeDeadline) { broker in
            guard let connection = broker.clients[client] else { return }
            connection.withdraw(request: request)
            broker.give(nil, to: id, of: connection, request)
        }
        fetch.state = .needingBody(connection.id, request: request, deadline: deadline)
    }

    /// The first answer counts. Silence, and what is not understood, gives no body.
    func give(_ body: NeededBody?, to id: FetchID, of connection: ClientConnection, _ request: Int) {
        guard connection.consultations.removeValue(forKey: request) != nil, let fetch = fetches[id],
            case .needingBody(_, _, let deadline) = fetch.state
        else { return }
        deadline.cancel()
        guard let body else { return perform(table.given(nil, for: id, environment)) }
        do throws(FetchFailure) {
            let given = try bodies.take(body, for: fetch, of: connection)
            perform(table.given(given, for: id, environment))
        } catch {
            cancel(fetch, error)
        }
    }

    private func neededBody(_ reply: ConnectionMachine.Reply, _ id: FetchID) -> NeededBody? {
        if case .result(let json) = reply, let body = try? NeededBody(json) { return body }
        log.warning("a client has given no body", metadata: ["fetch": "\(id)"])
        return nil
    }

    private func consultationAnswer(
        _ reply: ConnectionMachine.Reply, _ id: FetchID, _ consultation: Consultation?
    ) -> Bool? {
        switch reply {
        case .result(let json):
            let member = if case .approveRedirect? = consultation { "approve" } else { "answer" }
            if let reply = try? ConsultationReply(json, member) { return reply.answer }
        case .error(let error) where error.code == ErrorKind.methodNotFound.code:
            // Rule 3: not implemented means yes, but for what a connection asks.
            return consultation?.needsAnswer == false
        case .error, .broken:
            break
        }
        log.warning("malformed answer of a client; nothing that is stored is used", metadata: ["fetch": "\(id)"])
        return nil
    }
}

/// A fetch between its two halves.
struct ParkedFetch {
    let params: AuthChallengeParams
    /// Where its first half was.
    let scope: TokenScope

    var connection: ConnectionID { scope.connection }
    var peer: PeerIdentity { scope.peer }
    var program: ClientProgram { scope.program }

    /// Whether this is the peer that may come back: any program of the user that has the token, but for those that are kept
    /// apart.
    func isFor(_ other: ClientConnection) -> Bool {
        guard scope.isSameEntrance(as: other) else { return false }
        guard other.isConfined || peer.subject.isSandboxed else { return true }
        return isOfProgram(of: other)
    }

    func isOfProgram(of other: ClientConnection) -> Bool { scope.isOfProgram(of: other) }
}

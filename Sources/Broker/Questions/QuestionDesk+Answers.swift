internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Replies to what was asked, and `auth/respond`.
extension QuestionDesk {
    /// The reply to a request of ours.
    func receive(_ reply: ConnectionMachine.Reply, to request: Int, from connection: ClientConnection) {
        let asked = asked(connection.id)
        if let id = asked.requests.removeValue(forKey: request) { return receive(reply, id, from: connection) }
        guard let id = asked.challenges.challengeID(ofRequest: request), asked.challenges.settle(id) != nil else {
            return
        }
        switch reply {
        case .result(let json):
            do throws(InvalidParams) {
                // Only a person who is asked for all programs can say which of them is to be asked about no more.
                let answer = isForAgent(id) ? try AgentAnswer(json) : AgentAnswer(try ChallengeAnswer(json))
                accept(answer, to: id, from: connection)
            } catch {
                refuse(id, error)
            }
        case .error(let error):
            receive(error, id, from: connection)
        // Security rule P13. An agent's would be a cancel of all programs that ask the same.
        case .broken where !isForAgent(id):
            accept(AgentAnswer(.cancel), to: id, from: connection)
        case .broken:
            receive(RPCError(.invalidRequest, "malformed reply"), id, from: connection)
        }
    }

    private func isForAgent(_ id: String) -> Bool { self[id]?.isForAgent ?? false }

    /// Rule 26: an answer that is not understood sends nothing, and the client of the fetch is told why.
    private func refuse(_ id: String, _ problem: InvalidParams) {
        guard let question = close(id) else { return }
        let text = "The answer to the challenge was not understood, and nothing was sent: \(problem.detail)."
        fetches.report { $0.abort([question.fetch], FetchFailure(.invalidAnswer, text), $1) }
    }

    /// An error reply: "no such method" means that nobody handles challenges there. Any other is no answer.
    private func receive(_ error: RPCError, _ id: String, from connection: ClientConnection) {
        switch error.code {
        case ErrorKind.cancelled.code: accept(AgentAnswer(.cancel), to: id, from: connection)
        case ErrorKind.methodNotFound.code: accept(AgentAnswer(.useDefault), to: id, from: connection)
        default:
            context.log.warning(
                "a client failed to answer a challenge", metadata: ["challenge": "\(id)", "code": "\(error.code)"])
            passOn(id, because: .failed)
        }
    }

    /// `auth/respond`.
    func respond(_ params: AuthRespondParams, of connection: ClientConnection) -> JSON {
        let (id, asked) = (params.challengeID, asked(connection.id))
        guard asked.challenges.isOpen(id) else { return asked.challenges.verdict(onLateAnswer: id).json }
        guard let answer = params.answer else {
            return AuthRespondResult.invalid(problem: params.problem ?? "not an answer").json
        }
        guard !answer.stopsAsking || isForAgent(id) else {
            return AuthRespondResult.invalid(problem: "answer.stopAsking is for agents").json
        }
        guard let pending = asked.challenges.settle(id) else { return AuthRespondResult.gone.json }
        if let request = pending.request { connection.withdraw(request: request) }
        accept(answer, to: id, from: connection)
        return AuthRespondResult.accepted.json
    }

    private func accept(_ given: AgentAnswer, to id: String, from connection: ClientConnection) {
        guard let question = self[id], let challenge = question.challenge else { return }
        let (answer, program) = (given.answer, fetches[question.fetch]?.program ?? "")
        if given.stopsAsking { stopAsking(for: program, at: connection, answered: id) }
        audit.counters.challengesAnswered += 1
        if answer == .cancel { question.tellCancelled(.cancelled, connection) }
        if answer == .useDefault, question.isForAgent { return passOn(id, because: .declined) }
        resolve(id, with: answer, by: question.place.word)
        guard question.isForAgent else { return }
        prompts.note(answer, to: challenge, of: program)
        switch answer {
        case .cancel: settleTheSame(as: challenge, answer)
        // Of several schemes that only a client knows the next one is asked about in the same words.
        case .reject where challenge.protectionSpace.authenticationMethod != .other:
            settleTheSame(as: challenge, answer)
        case .reject, .credential, .proceed, .useDefault: break
        }
    }

    /// The question is answered.
    func resolve(_ id: String, with answer: ChallengeAnswer, by name: String) {
        guard let question = close(id), let challenge = question.challenge else { return }
        clients.announceResolution(of: question, action: answer.action, by: name)
        guard let fetch = fetches[question.fetch] else { return }
        audit.recordAnswer(answer, to: challenge, for: fetch, by: name, clients.agent(of: question))
        fetch.openAnswer = OpenAnswer(question, challenge, answer)
        fetches.report { $0.answered(answer, for: fetch.id, $1) }
    }

    // MARK: What an answer says of other questions

    /// A no at an agent counts for all for whom agents are asked the same, whether or not they share a login.
    private func settleTheSame(as challenge: Challenge, _ answer: ChallengeAnswer) {
        let subject = RecentCancels.Subject(challenge)
        let same = all { $0.isForAgent && $0.challenge.map(RecentCancels.Subject.init) == subject }
        for other in same {
            takeBack(other, because: .cancelled)
            resolve(other.id, with: answer, by: other.place.word)
        }
    }

    /// The questions of this program are put to no agent from now on; those that are open are taken back.
    /// - Parameters:
    ///   - agent: at which a person has said so.
    ///   - answered: the question that this was said to.
    func stopAsking(for program: ExactText, at agent: ClientConnection, answered: String) {
        prompts.stop(program, agent.cause)
        let open = all { $0.id != answered && $0.isForAgent && fetches[$0.fetch]?.program == program }
        for question in open {
            guard self[question.id] != nil, let fetch = fetches[question.fetch] else { continue }
            if let challenge = question.challenge {
                takeBack(question, because: .cancelled)
                _ = close(question.id)
                clients.announceResolution(of: question, action: nil, by: "agent")
                leaveUnasked(challenge, of: fetch)
            } else {
                prompts.noteUnasked(program)
                settleConsent(question.id, nil, by: "nobody")
            }
        }
    }
}

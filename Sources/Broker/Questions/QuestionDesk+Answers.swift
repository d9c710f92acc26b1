internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Handles replies to questions, and `auth/respond`.
extension QuestionDesk {
    /// Handles the reply of a client to a request of the broker.
    func receive(_ reply: ConnectionMachine.Reply, to request: Int, from connection: ClientConnection) {
        let asked = asked(connection.id)
        if let id = asked.requests.removeValue(forKey: request) { return receive(reply, id, from: connection) }
        guard let id = asked.challenges.challengeID(ofRequest: request), asked.challenges.settle(id) != nil else {
            return
        }
        switch reply {
        case .result(let json):
            do throws(InvalidParams) {
                // Only agents can stop the prompts of a program, because agents show prompts for all programs.
                // guard: stopping-is-for-agents
                let answer =
                    self[id]?.isForAgent == true ? try AgentAnswer(json) : AgentAnswer(try ChallengeAnswer(json))
                accept(answer, to: id, from: connection)
            } catch {
                refuse(id, error)
            }
        case .error(let error):
            receive(error, id, from: connection)
        // A malformed reply is a cancel (SECURITY-RULES P13), but not from an agent: a cancel of an agent applies to
        // all programs with the same challenge.
        case .broken where self[id]?.isForAgent != true:
            accept(AgentAnswer(.cancel), to: id, from: connection)
        case .broken:
            // guard: a-malformed-reply-is-no-cancel
            receive(RPCError(.invalidRequest, "malformed reply"), id, from: connection)
        }
    }

    /// Fails the fetch after an invalid answer. No credential is sent (SEMANTICS rule 26).
    private func refuse(_ id: String, _ problem: InvalidParams) {
        guard let question = close(id) else { return }
        let text = "invalid answer to the challenge, nothing was sent: \(problem.detail)"
        fetches.report { $0.abort([question.fetch], FetchFailure(.invalidAnswer, text), $1) }
    }

    /// Handles an error reply. `cancelled` cancels the challenge, and `methodNotFound` counts as the answer `default`,
    /// because the client does not handle challenges. Any other error counts as no answer.
    private func receive(_ error: RPCError, _ id: String, from connection: ClientConnection) {
        switch error.code {
        case ErrorKind.cancelled.code: accept(AgentAnswer(.cancel), to: id, from: connection)
        case ErrorKind.methodNotFound.code: accept(AgentAnswer(.useDefault), to: id, from: connection)
        default:
            context.log.warning(
                "a client failed to answer a challenge", metadata: ["challenge": "\(id)", "code": "\(error.code)"])
            advanceQuestion(id, because: .failed)  // guard: silence-is-no-default
        }
    }

    /// `auth/respond`: handles the answer to a challenge that is open at this client.
    func respond(_ params: AuthRespond, of connection: ClientConnection) -> AuthRespondResult {
        let (id, asked) = (params.challengeID, asked(connection.id))
        guard asked.challenges.isOpen(id) else { return asked.challenges.verdict(onLateAnswer: id) }
        guard let answer = params.answer else {
            return .invalid(problem: params.problem ?? "not an answer")
        }
        guard !answer.stopsAsking || self[id]?.isForAgent == true else {
            return .invalid(problem: "answer.stopAsking is for agents")
        }
        guard let pending = asked.challenges.settle(id) else { return .gone }
        if let request = pending.request { connection.withdraw(request: request) }
        accept(answer, to: id, from: connection)
        return .accepted
    }

    private func accept(_ given: AgentAnswer, to id: String, from connection: ClientConnection) {
        guard let question = self[id], let challenge = question.challenge else { return }
        let (answer, program) = (given.answer, fetches[question.fetch]?.program ?? "")
        if given.stopsAsking { stopAsking(for: program, at: connection, answered: id) }
        audit.counters.challengesAnswered += 1
        if answer == .cancel { question.notifyCancelled(.cancelled, connection) }
        if answer == .useDefault, question.isForAgent { return advanceQuestion(id, because: .declined) }
        resolve(id, with: answer, by: question.place.word)
        guard question.isForAgent else { return }
        prompts.record(answer, to: challenge, of: program)
        switch answer {
        case .cancel: settleTheSame(as: challenge, answer)
        // Schemes unknown to the broker are excluded, because the challenge for the next scheme looks the same.
        case .reject where challenge.protectionSpace.authenticationMethod != .other:
            settleTheSame(as: challenge, answer)
        case .reject, .credential, .proceed, .useDefault: break
        }
    }

    /// Closes a question, and passes its answer to the fetch.
    func resolve(_ id: String, with answer: ChallengeAnswer, by name: String, event: FetchTable.Event? = nil) {
        guard let question = close(id), let challenge = question.challenge else { return }
        clients.announceResolution(of: question, action: answer.action, by: name)
        guard let fetch = fetches[question.fetch] else { return }
        audit.recordAnswer(answer, to: challenge, for: fetch, by: name, clients.agent(of: question))
        fetch.openAnswer = OpenAnswer(question, challenge, answer)
        fetches.report(event ?? .answered(answer), of: fetch.id)
    }

    // MARK: Outcomes

    /// Handles the verdict of a server or proxy on a login.
    func record(_ verdict: LoginVerdict, of fetch: RunningFetch) {
        if verdict.isAccepted, let answer = fetch.openAnswer, answer.isAbout(verdict), answer.isOfAgent {
            prompts.recordLogin(at: verdict.space, isAccepted: true, of: fetch.program)
        }
        clients.notify(verdict, of: fetch)
    }

    /// Handles the result of a fetch: the server may not say whether the login of an agent's answer was right.
    func record(_ unanswered: Unanswered?, of fetch: RunningFetch) {
        guard let unanswered, unanswered.schemes.contains(where: { $0.reason == .noChallenge }),
            let answer = fetch.openAnswer, answer.isOfAgent, answer.isProxy == unanswered.isOfProxy
        else { return }
        prompts.recordLogin(at: answer.space, isAccepted: false, of: fetch.program)
    }

    // MARK: Logins in a browser

    /// Withdraws the question about a login that has ended, and answers it.
    /// - Parameters:
    ///   - answer: `nil` if the login has failed, and the caller ends the fetch.
    ///   - event: the event for the fetch, if it is not that of the answer.
    func endLogin(of fetch: RunningFetch, _ answer: ChallengeAnswer?, event: FetchTable.Event? = nil) {
        guard let question = question(of: fetch) else { return }
        takeBack(question, because: .answered)
        guard let answer else {
            _ = close(question.id)
            return
        }
        resolve(question.id, with: answer, by: "browser", event: event)
    }

    // MARK: Effects on other questions

    /// Applies a cancel or rejection to all open questions at agents about the same challenge, whether or not their
    /// fetches share credentials.
    private func settleTheSame(as challenge: Challenge, _ answer: ChallengeAnswer) {
        let topic = RecentCancels.Topic(challenge)
        let same = all { $0.isForAgent && $0.challenge.map(RecentCancels.Topic.init) == topic }
        for other in same {
            takeBack(other, because: .cancelled)
            resolve(other.id, with: answer, by: other.place.word)
        }
    }

    /// Stops agent prompts for a program, and withdraws its open prompts.
    /// - Parameters:
    ///   - agent: the agent whose answer contained `stopAsking`.
    ///   - answered: the ID of the question that was answered, which is not withdrawn.
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
                prompts.recordUnasked(program)
                settleConsent(question.id, nil, by: "nobody")
            }
        }
        fetches.desks.programPrompts.stop(program)
    }
}

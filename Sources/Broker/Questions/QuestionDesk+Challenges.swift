internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Putting challenges: to the client of a fetch, to agents, and back.
extension QuestionDesk {
    /// Rule 15: the subscribed client first, then the agents, in their order.
    func ask(_ challenge: Challenge, _ respondent: Respondent, for fetch: RunningFetch) {
        switch respondent {
        case .handler, .client: askClient(challenge, for: fetch)
        case .agents: askAgents(challenge, for: fetch)
        }
    }

    private func askClient(_ challenge: Challenge, for fetch: RunningFetch) {
        guard let connection = clients.owner(of: fetch),
            challenge.isForHandler
                ? !connection.hasInputEnded : fetch.delivery == .result || connection.isSubscribed
        else { return fetches.report { $0.notAsked(fetch.id, because: .unsubscribed, $1) } }
        guard mayAsk(for: fetch) else { return }
        put(open(challenge, for: fetch, at: .client(connection.id)), to: connection)
    }

    private func askAgents(_ challenge: Challenge, for fetch: RunningFetch) {
        guard let agent = clients.agent(for: challenge, after: []) else {
            return fetches.report { $0.notAsked(fetch.id, because: .noAgent, $1) }
        }
        guard !prompts.isStopped(fetch.program) else { return leaveUnasked(challenge, of: fetch) }
        guard !prompts.isJustCancelled(challenge, for: fetch.program) else {
            context.log.info("cancelled as another fetch was a moment ago", metadata: ["fetch": "\(fetch.id)"])
            audit.recordDenial(.challengeCancelled, fetch.cause, origin: fetch.origin)
            return fetches.report { $0.answered(.cancel, for: fetch.id, $1) }
        }
        guard mayPrompt(about: challenge, for: fetch), mayAsk(for: fetch) else { return }
        put(open(challenge, for: fetch, at: .agent(agent.id)), to: agent)
    }

    private func open(_ challenge: Challenge, for fetch: RunningFetch, at place: PendingQuestion.Place) -> String {
        clients.tellOutcome(.superseded, of: fetch)
        audit.counters.challengesAsked += 1
        context.log.info(
            "challenge",
            metadata: [
                "fetch": "\(fetch.id)", "method": "\(challenge.protectionSpace.authenticationMethod.rawValue)",
                "failures": "\(challenge.previousFailureCount)",
            ])
        let id = RandomText.make128Bits()
        open(.challenge(challenge), id, for: fetch, at: place)
        return id
    }

    func deliver(
        _ challenge: Challenge, _ question: PendingQuestion, of fetch: RunningFetch, to connection: ClientConnection
    ) {
        var params = AuthChallengeParams(
            challengeID: question.id, fetchID: fetch.id.description, challenge: challenge,
            requester: clients.owner(of: fetch)?.requester
                ?? Requester(name: nil, pid: 0, subject: Subject(.unknown, "")),
            deadlineMs: context.options.challengeDeadline.wholeMilliseconds)
        let delivery = question.delivery(of: challenge, in: fetch)
        guard delivery != .result else { return park(fetch, params, of: connection) }
        params.handledRequest = challenge.isForHandler ? fetch.owner?.requestID : nil
        audit.recordQuestion(challenge, for: fetch, to: connection, at: question.place.word)
        if delivery == .notification {
            asked(connection.id).challenges.add(params, request: nil)
            connection.notify(.authPending, params.json)
        } else {
            let request = connection.request(.authChallenge, params.json)
            asked(connection.id).challenges.add(params, request: request)
        }
    }

    // MARK: Whether to ask

    /// Whether one more question may wait for an answer on behalf of this fetch. If not, the fetch ends.
    private func mayAsk(for fetch: RunningFetch) -> Bool {
        guard let connection = clients.owner(of: fetch) else { return true }
        let open = connection.fetches.count { id in fetches[id].flatMap(question)?.challenge != nil }
        guard open >= Limits.openChallenges else { return true }
        let text = "\(open) questions of this connection wait for an answer. Answer some first."
        fetches.cancel(fetch, FetchFailure(.busy, text))
        return false
    }

    /// Whether an agent may be asked again for this program. The fetch fails otherwise.
    func mayPrompt(about challenge: Challenge, for fetch: RunningFetch) -> Bool {
        guard let wait = prompts.wait(of: fetch.program, before: challenge) else { return true }
        let seconds = Int(wait.components.seconds) + 1
        context.log.notice("a program asks too often", metadata: ["fetch": "\(fetch.id)", "seconds": "\(seconds)"])
        audit.recordDenial(.busy, fetch.cause, origin: fetch.origin)
        let text =
            "the last questions of this program were cancelled; it may ask about \(fetch.origin.text) again in \(seconds) s"
        fetches.cancel(fetch, FetchFailure(.busy, text))
        return false
    }

    /// The fetch continues as though there were no agent.
    func leaveUnasked(_ challenge: Challenge, of fetch: RunningFetch) {
        prompts.noteUnasked(fetch.program)
        audit.recordSilence(Unanswered.NoRespondent.stopped.rawValue, after: challenge, for: fetch)
        fetches.report { $0.notAsked(fetch.id, because: .stopped, $1) }
    }

    // MARK: Taking challenges back

    func passOn(_ challenge: Challenge, _ question: PendingQuestion, of fetch: RunningFetch, because reason: NoAnswer) {
        if reason.isSilence {
            takeBack(question, because: .deadline)
            recordSilence(challenge, question, fetch, reason)
        }
        switch question.place {
        case .parked:
            _ = close(question.id)
            return fetches.cancel(
                fetch, FetchFailure(.challengeTimedOut, "Nobody came back with the answer to the challenge in time."))
        case .agent(let id):
            if let next = clients.agent(for: challenge, after: question.passedOn.union([id])) {
                return move(question, to: next)
            }
        case .client: break
        }
        guard reason.isSilence else { return resolve(question.id, with: .useDefault, by: question.place.word) }
        guard close(question.id) != nil else { return }
        clients.announceResolution(
            of: question, action: nil, by: reason == .deadline ? "deadline" : question.place.word)
        fetches.report { $0.unanswered(fetch.id, $1) }
    }

    func takeBack(_ question: PendingQuestion, because reason: WithdrawalReason) {
        guard let id = question.place.connection, let connection = clients[id] else { return }
        let respondent = asked(id)
        respondent.queue.remove(question.id)
        // After its deadline a question counts as answered; with its fetch it is gone.
        let pending =
            reason == .deadline
            ? respondent.challenges.settle(question.id) : respondent.challenges.withdraw(question.id)
        guard let pending else { return }
        if let request = pending.request { connection.withdraw(request: request) }
        if reason == .cancelled || pending.request == nil { question.tellCancelled(reason, connection) }
    }

    func recordSilence(_ challenge: Challenge, _ question: PendingQuestion, _ fetch: RunningFetch, _ reason: NoAnswer) {
        audit.recordSilence(
            reason.rawValue, after: challenge, for: fetch, at: question.place.word, clients.agent(of: question))
    }
}

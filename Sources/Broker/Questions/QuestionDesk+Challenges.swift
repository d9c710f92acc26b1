internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Delivers challenges to clients and agents, and withdraws them.
extension QuestionDesk {
    /// Delivers a challenge to the respondent that the fetch table has chosen: its client first, then the agents in
    /// their order (SEMANTICS rule 15).
    func ask(_ challenge: Challenge, _ respondent: Respondent, for fetch: RunningFetch) {
        switch respondent {
        case .handler, .client: askClient(challenge, for: fetch)
        case .agents: askAgents(challenge, for: fetch)
        }
    }

    private func askClient(_ challenge: Challenge, for fetch: RunningFetch) {
        guard let connection = clients.owner(of: fetch),
            challenge.isForHandler
                ? !connection.hasInputEnded : connection.isSubscribed
        else { return fetches.report(.notAsked(.unsubscribed), of: fetch.id) }
        guard mayAsk(for: fetch) else { return }
        put(open(challenge, for: fetch, at: .client(connection.id)), to: connection)
    }

    private func askAgents(_ challenge: Challenge, for fetch: RunningFetch) {
        guard let agent = clients.agent(for: challenge, after: []) else {
            return fetches.report(.notAsked(.noAgent), of: fetch.id)
        }
        // guard: stopped-programs-are-not-asked-about
        guard !prompts.isStopped(fetch.program) else { return leaveUnasked(challenge, of: fetch) }
        guard !prompts.isJustCancelled(challenge, for: fetch.program) else {
            context.log.info(
                "challenge cancelled: the user has just cancelled the same challenge",
                metadata: ["fetch": "\(fetch.id)"])
            audit.recordDenial(.challengeCancelled, fetch.cause, origin: fetch.origin)
            return fetches.report(.answered(.cancel), of: fetch.id)
        }
        guard mayPrompt(about: challenge, for: fetch), mayAsk(for: fetch) else { return }
        put(open(challenge, for: fetch, at: .agent(agent.id)), to: agent)
    }

    private func open(_ challenge: Challenge, for fetch: RunningFetch, at place: PendingQuestion.Place) -> String {
        clients.notifyOutcome(.superseded, of: fetch)
        audit.counters.challengesAsked += 1
        context.log.info(
            "challenge opened",
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
            deadlineMs: context.challengeDeadline(challenge).wholeMilliseconds)
        params.handledRequest = challenge.isForHandler ? fetch.owner?.requestID : nil
        audit.recordQuestion(challenge, for: fetch, to: connection, at: question.place.word)
        if question.delivery(of: challenge, in: fetch) == .notification {
            asked(connection.id).challenges.add(params, request: nil)
            connection.notify(.authPending, params.json)
        } else {
            let request = connection.request(.authChallenge, params.json)
            asked(connection.id).challenges.add(params, request: request)
        }
    }

    // MARK: Limits

    /// Returns whether the client of this fetch may have another open challenge. If not, the fetch fails with `busy`.
    private func mayAsk(for fetch: RunningFetch) -> Bool {
        guard let connection = clients.owner(of: fetch) else { return true }
        // Few clients have so many fetches, and counting their challenges takes long.
        guard connection.fetches.count >= Limits.openChallenges else { return true }
        let open = connection.fetches.count { id in fetches[id].flatMap(question)?.challenge != nil }
        guard open >= Limits.openChallenges else { return true }
        let text = "too many open challenges on this connection (limit \(Limits.openChallenges)); answer one first"
        fetches.cancel(fetch, FetchFailure(.busy, text))
        return false
    }

    /// Returns whether this program may cause another prompt at an agent. If not, the fetch fails with `busy`.
    func mayPrompt(about challenge: Challenge, for fetch: RunningFetch) -> Bool {
        guard let wait = prompts.wait(of: fetch.program, before: challenge) else { return true }
        let seconds = Int(wait.components.seconds) + 1
        context.log.notice("prompts are rate-limited", metadata: ["fetch": "\(fetch.id)", "seconds": "\(seconds)"])
        audit.recordDenial(.busy, fetch.cause, origin: fetch.origin)
        let text =
            "earlier prompts of this program were cancelled or in vain; it may cause another one for \(fetch.origin.text) in \(seconds) s"
        fetches.cancel(fetch, FetchFailure(.busy, text))
        return false
    }

    /// Continues the fetch as if there were no agent, because prompts for its program are stopped.
    func leaveUnasked(_ challenge: Challenge, of fetch: RunningFetch) {
        prompts.recordUnasked(fetch.program)
        audit.recordSilence(Unanswered.NoRespondent.stopped.rawValue, after: challenge, for: fetch)
        fetches.report(.notAsked(.stopped), of: fetch.id)
    }

    // MARK: Withdrawal

    /// Continues after a respondent gave no answer: asks the next agent, if there is one; otherwise continues the fetch
    /// without an answer.
    func advanceQuestion(
        _ challenge: Challenge, _ question: PendingQuestion, of fetch: RunningFetch, because reason: NoAnswer
    ) {
        if reason.isSilence {
            takeBack(question, because: .deadline)
            recordSilence(challenge, question, fetch, reason)
        }
        if case .agent(let id) = question.place,
            let next = clients.agent(for: challenge, after: question.passedOn.union([id]))
        {
            return move(question, to: next)
        }
        guard reason.isSilence else { return resolve(question.id, with: .useDefault, by: question.place.word) }
        guard close(question.id) != nil else { return }
        clients.announceResolution(
            of: question, action: nil, by: reason == .deadline ? "deadline" : question.place.word)
        fetches.report(.unanswered, of: fetch.id)
    }

    /// Withdraws a queued or delivered challenge from its respondent.
    func takeBack(_ question: PendingQuestion, because reason: WithdrawalReason) {
        let id = question.place.connection
        guard let connection = clients[id] else { return }
        let respondent = asked(id)
        respondent.queue.remove(question.id)
        // After its deadline, a question counts as answered, so a late `auth/respond` gets `answered` rather than
        // `gone`.
        let pending =
            reason == .deadline
            ? respondent.challenges.settle(question.id) : respondent.challenges.withdraw(question.id)
        guard let pending else { return }
        if let request = pending.request { connection.withdraw(request: request) }
        if reason != .deadline || pending.request == nil { question.notifyCancelled(reason, connection) }
    }

    func recordSilence(_ challenge: Challenge, _ question: PendingQuestion, _ fetch: RunningFetch, _ reason: NoAnswer) {
        audit.recordSilence(
            reason.rawValue, after: challenge, for: fetch, at: question.place.word, clients.agent(of: question))
    }
}

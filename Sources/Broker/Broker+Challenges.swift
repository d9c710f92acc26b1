internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// A question that waits for its answer. Whoever takes it out of the broker's table decides what comes of it.
struct OpenQuestion {
    let fetchID: String
    let connection: ConnectionID
    let deadline: Task<Void, Never>
}

/// Why a question is taken back.
enum WithdrawalReason: String {
    case cancelled, deadline
}

extension Broker {
    /// Sends a challenge to the client of `fetch`. An answer, or the deadline, makes the fetch go on.
    func ask(_ challenge: Challenge, for fetch: RunningFetch) {
        guard let connection = connections[fetch.connection], connection.isSubscribed else {
            return perform(fetch.machine.answered(.useDefault, environment, session: &session), for: fetch)
        }
        let challengeID = RandomText.make128Bits()
        let params = AuthChallengeParams(
            challengeID: challengeID, fetchID: fetch.id, challenge: challenge,
            requester: Requester(name: connection.name, pid: Int(connection.peer.pid)),
            deadlineMs: options.challengeDeadline.wholeMilliseconds)
        fetch.state = .challenged(challengeID: challengeID, since: clock.now)
        counters.challengesAsked += 1
        log.info(
            "challenge",
            metadata: [
                "fetch": "\(fetch.id)", "method": "\(challenge.protectionSpace.authenticationMethod.rawValue)",
                "failures": "\(challenge.previousFailureCount)",
            ])
        questions[challengeID] = OpenQuestion(
            fetchID: fetch.id, connection: connection.id, deadline: startDeadline(of: challengeID))
        deliver(params, to: connection)
    }

    private func deliver(_ params: AuthChallengeParams, to connection: ClientConnection) {
        switch connection.delivery {
        case .request:
            connection.challenges.add(params, request: connection.request(.authChallenge, params.json))
        case .notification:
            connection.challenges.add(params, request: nil)
            connection.notify(.authPending, params.json)
        case .none:
            preconditionFailure("who is not subscribed is not asked")
        }
    }

    private func startDeadline(of challengeID: String) -> Task<Void, Never> {
        let (clock, limit) = (clock, options.challengeDeadline)
        return Task {
            guard (try? await clock.sleep(for: limit)) != nil, questions[challengeID] != nil else { return }
            counters.challengesTimedOut += 1
            log.info("challenge timed out", metadata: ["challenge": "\(challengeID)"])
            if let fetch = withdraw(challengeID, because: .deadline) { resume(fetch, with: .useDefault) }
        }
    }

    /// Tells the client that its answer is no longer wanted. Returns the fetch that was waiting for it.
    @discardableResult
    func withdraw(_ challengeID: String, because reason: WithdrawalReason) -> RunningFetch? {
        guard let question = questions[challengeID] else { return nil }
        let connection = connections[question.connection]
        // After its deadline a question counts as answered; with its fetch it is gone.
        let pending =
            reason == .deadline
            ? connection?.challenges.settle(challengeID) : connection?.challenges.withdraw(challengeID)
        if let connection, let pending {
            if let request = pending.request { connection.withdraw(request: request) }
            if reason == .cancelled || pending.request == nil {
                notifyCancelled(pending.params, reason, to: connection)
            }
        }
        return close(challengeID)
    }

    /// Takes the question off the table. The first caller gets the fetch that waits; for every other one there is none.
    private func close(_ challengeID: String) -> RunningFetch? {
        guard let question = questions.removeValue(forKey: challengeID) else { return nil }
        question.deadline.cancel()
        guard let fetch = fetches[question.fetchID] else { return nil }
        if case .challenged(_, let since) = fetch.state { fetch.challengeTime += clock.now - since }
        return fetch
    }

    private func resume(_ fetch: RunningFetch, with answer: ChallengeAnswer) {
        perform(fetch.machine.answered(answer, environment, session: &session), for: fetch)
    }

    private func notifyCancelled(
        _ params: AuthChallengeParams, _ reason: WithdrawalReason, to connection: ClientConnection
    ) {
        connection.notify(
            .authCancelled,
            [
                "challengeId": .string(params.challengeID), "fetchId": .string(params.fetchID),
                "reason": .string(reason.rawValue),
            ])
    }

    /// The client has said its last word: what it was asked goes on as though it had no handler.
    func settleQuestions(of connection: ClientConnection) {
        for challenge in connection.challenges.all {
            if let fetch = withdraw(challenge.challengeID, because: .deadline) { resume(fetch, with: .useDefault) }
        }
    }

    // MARK: Answers

    /// The reply to an `auth/challenge`.
    func receiveAnswer(_ reply: ConnectionMachine.Reply, toRequest request: Int, from connection: ClientConnection) {
        guard let challengeID = connection.challenges.challengeID(ofRequest: request),
            let pending = connection.challenges.settle(challengeID)
        else { return }
        switch reply {
        case .result(let json):
            do throws(InvalidParams) {
                accept(try ChallengeAnswer(json), to: pending.params, from: connection)
            } catch {
                let text = "The answer to the challenge was not understood, and nothing was sent: \(error.detail)."
                guard let fetch = close(challengeID) else { return }
                perform(fetch.machine.abort(FetchFailure(.invalidAnswer, text)), for: fetch)
            }
        case .error(let error):
            accept(answer(for: error, challengeID), to: pending.params, from: connection)
        case .broken:
            accept(.cancel, to: pending.params, from: connection)
        }
    }

    /// What an error stands for: "no such method" means that nobody handles challenges there.
    private func answer(for error: RPCError, _ challengeID: String) -> ChallengeAnswer {
        switch error.code {
        case ErrorKind.cancelled.code: return .cancel
        case ErrorKind.methodNotFound.code: return .useDefault
        default:
            log.warning(
                "a client failed to answer a challenge",
                metadata: ["challenge": "\(challengeID)", "code": "\(error.code)"])
            return .useDefault
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
        guard let pending = connection.challenges.settle(params.challengeID) else {
            return AuthRespondResult.gone.json
        }
        if let request = pending.request { connection.withdraw(request: request) }
        accept(answer, to: pending.params, from: connection)
        return AuthRespondResult.accepted.json
    }

    private func accept(
        _ answer: ChallengeAnswer, to params: AuthChallengeParams, from connection: ClientConnection
    ) {
        counters.challengesAnswered += 1
        if answer == .cancel { notifyCancelled(params, .cancelled, to: connection) }
        if let fetch = close(params.challengeID) { resume(fetch, with: answer) }
    }
}

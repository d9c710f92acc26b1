internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// A fetch that waits for an answer. Resumed exactly once, by whoever takes it out of the broker's table.
struct OpenQuestion {
    let connection: ConnectionID
    let continuation: CheckedContinuation<AskOutcome, Never>
    let deadline: Task<Void, Never>
}

/// How a wait for an answer ended.
enum AskOutcome: Sendable {
    case answer(ChallengeAnswer)
    case abort(FetchFailure)
}

/// Why a question is taken back.
enum WithdrawalReason: String {
    case cancelled, deadline
}

extension Broker {
    /// Sends a challenge to the client of `fetch` and waits, no longer than the deadline, for what comes of it.
    func ask(_ challenge: Challenge, for fetch: RunningFetch) async -> AskOutcome {
        guard let connection = connections[fetch.connection], connection.isSubscribed, !Task.isCancelled else {
            return .answer(.useDefault)
        }
        let challengeID = RandomText.make128Bits()
        let params = AuthChallengeParams(
            challengeID: challengeID, fetchID: fetch.id, challenge: challenge,
            requester: Requester(name: connection.name, pid: Int(connection.peer.pid)),
            deadlineMs: options.challengeDeadline.wholeMilliseconds)
        fetch.state = .challenged(challengeID: challengeID)
        counters.challengesAsked += 1
        log.info(
            "challenge",
            metadata: [
                "fetch": "\(fetch.id)", "method": "\(challenge.protectionSpace.authenticationMethod.rawValue)",
                "failures": "\(challenge.previousFailureCount)",
            ])
        return await withCheckedContinuation { continuation in
            questions[challengeID] = OpenQuestion(
                connection: connection.id, continuation: continuation, deadline: startDeadline(of: challengeID))
            deliver(params, to: connection)
        }
    }

    private func deliver(_ params: AuthChallengeParams, to connection: ClientConnection) {
        switch connection.delivery {
        case .request:
            connection.challenges.add(params, request: connection.request(.authChallenge, params.json))
        case .notification:
            connection.challenges.add(params, request: nil)
            connection.notify(.authPending, params.json)
        case .none:
            settle(params.challengeID, .answer(.useDefault))
        }
    }

    private func startDeadline(of challengeID: String) -> Task<Void, Never> {
        let (clock, limit) = (clock, options.challengeDeadline)
        return Task {
            guard (try? await clock.sleep(for: limit)) != nil, questions[challengeID] != nil else { return }
            counters.challengesTimedOut += 1
            withdraw(challengeID, because: .deadline)
            settle(challengeID, .answer(.useDefault))
        }
    }

    /// Ends the wait. The first caller counts; for every other one there is nothing left to end.
    func settle(_ challengeID: String, _ outcome: AskOutcome) {
        guard let question = questions.removeValue(forKey: challengeID) else { return }
        question.deadline.cancel()
        _ = connections[question.connection]?.challenges.settle(challengeID)
        question.continuation.resume(returning: outcome)
    }

    /// Tells the client that its answer is no longer wanted.
    func withdraw(_ challengeID: String, because reason: WithdrawalReason) {
        guard let question = questions[challengeID], let connection = connections[question.connection],
            let pending = connection.challenges.withdraw(challengeID)
        else { return }
        if let request = pending.request { connection.withdraw(request: request) }
        if reason == .cancelled || pending.request == nil { notifyCancelled(pending.params, reason, to: connection) }
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
                settle(challengeID, .abort(FetchFailure(.invalidAnswer, text)))
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
        settle(params.challengeID, .answer(answer))
    }
}

internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Who wants to be asked, and challenges that are the result of a fetch, whose second half brings the answer.
extension QuestionDesk {
    /// The first half of the fetch ends here; the second one names the token.
    func park(_ fetch: RunningFetch, _ params: AuthChallengeParams, of connection: ClientConnection) {
        guard let owner = fetch.owner, let challenge = self[params.challengeID]?.challenge else { return }
        do throws(FetchFailure) { try parked.checkRoom(for: connection) } catch { return fetches.cancel(fetch, error) }
        let token = parked.add(params, TokenScope(connection))
        setPlace(.parked(token: token), of: params.challengeID)
        audit.recordQuestion(challenge, for: fetch, to: connection, at: "client")
        fetch.owner = nil
        connection.fetches.remove(fetch.id)
        fetch.holding = FetchHolding(in: connection.program.holdings, bytes: fetch.heldBytes)
        guard let call = owner.call else { return }
        connection.complete(
            call, .success(["state": "authRequired", "challenge": params.json, "resume": .string(token)]))
    }

    /// The second half: whoever brings it gets the result.
    func resume(_ call: CallID, _ params: FetchResumeParams, from connection: ClientConnection) throws {
        guard let entry = parked[params.resume], entry.isFor(connection),
            let question = self[entry.params.challengeID], let fetch = fetches[question.fetch]
        else {
            throw RPCError(
                .unknownResume,
                "Nothing waits for this resume token: it was used before, or its deadline has passed. Start the fetch anew."
            )
        }
        unpark(params.resume)
        fetch.owner = RunningFetch.Owner(
            connection: connection.id, call: call, requestID: connection.requestID(of: call))
        fetch.client = connection.auditClient
        fetch.belong(to: connection)
        audit.counters.challengesAnswered += 1
        resolve(question.id, with: params.answer, by: "client")
    }

    func unpark(_ token: String) {
        if let entry = parked.remove(token) { noteRoom(at: entry.scope.connection) }
    }

    // MARK: Who wants to be asked

    func subscribe(_ params: AuthSubscribeParams, _ connection: ClientConnection) -> JSON {
        connection.profile.subscription = params.subscription(after: connection.profile.subscription?.delivery)
        noteRoom(at: connection.id)
        return [:]
    }

    /// Fetches that were started before go on without asking here.
    func unsubscribe(_ connection: ClientConnection) -> JSON {
        connection.profile.subscription = nil
        leave(connection, because: .unregistered, where: \.isForSubscriber)
        return [:]
    }

    /// What an agent was asked is asked elsewhere.
    func unregisterAgent(_ connection: ClientConnection) throws -> JSON {
        guard let agent = connection.profile.agent else {
            throw RPCError(.invalidRequest, "this connection is no agent")
        }
        connection.profile.agent = nil
        context.log.notice("agent unregistered", metadata: ["agent": "a\(agent.number)"])
        leave(connection, because: .unregistered, where: \.isForAgent)
        return [:]
    }

    /// `auth/listPending`: what this connection was asked, and what waits for the second half of a fetch of this user; where
    /// programs are kept apart, of this program.
    func listPending(_ connection: ClientConnection) -> JSON {
        let isApart = context.options.sharing != .user
        let own = parked.all.filter { $0.isFor(connection) && (!isApart || $0.scope.isOfProgram(of: connection)) }
        let halves = own.map(\.params)
        let all = asked(connection.id).challenges.all + halves.sorted { $0.challengeID < $1.challengeID }
        return ["challenges": .array(all.map(\.json))]
    }
}

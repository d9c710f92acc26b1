internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The parked fetches, by resume token.
struct ParkedFetches {
    private var fetches: [String: ParkedFetch] = [:]

    subscript(token: String) -> ParkedFetch? { fetches[token] }

    var all: Dictionary<String, ParkedFetch>.Values { fetches.values }

    func count(at connection: ConnectionID) -> Int { all.count { $0.scope.connection == connection } }

    /// Returns the program of a process that has a parked fetch.
    func program(of pid: Int32) -> ClientProgram? { all.first { $0.scope.peer.pid == pid }?.scope.program }

    func checkRoom(for connection: ClientConnection) throws(FetchFailure) {
        guard fetches.count < Limits.parkedFetches else {
            throw FetchFailure(
                .busy, "too many parked fetches (limit \(Limits.parkedFetches)); answer one first")
        }
        guard all.count(where: { $0.scope.peer.pid == connection.peer.pid }) < Limits.parkedFetchesOfProgram else {
            let text =
                "too many parked fetches of this program (limit \(Limits.parkedFetchesOfProgram)); answer one first"
            throw FetchFailure(.busy, text)
        }
    }

    /// Parks a fetch, and returns its resume token.
    mutating func add(_ params: AuthChallengeParams, _ scope: TokenScope) -> String {
        let token = RandomText.make128Bits()
        fetches[token] = ParkedFetch(params: params, scope: scope)
        return token
    }

    mutating func remove(_ token: String) -> ParkedFetch? { fetches.removeValue(forKey: token) }
}

/// A fetch whose challenge was delivered as the result of the call, until the fetch is resumed.
struct ParkedFetch {
    let params: AuthChallengeParams
    /// The scope of the client that started the fetch.
    let scope: TokenScope

    /// Whether `other` may resume the fetch: any program of the same user on the same kind of socket. Confined programs
    /// may resume only their own fetches, and only the same program may resume a fetch of a sandboxed one.
    func isFor(_ other: ClientConnection) -> Bool {
        guard scope.isSameEntrance(as: other) else { return false }
        guard other.isConfined || scope.peer.subject.isSandboxed else { return true }
        return scope.isOfProgram(of: other)
    }
}

/// Parks fetches whose challenge is delivered as the result of the call, and manages subscriptions.
extension QuestionDesk {
    /// Parks the fetch: its call is answered with the challenge and a resume token.
    func park(_ fetch: RunningFetch, _ params: AuthChallengeParams, of connection: ClientConnection) {
        guard let owner = fetch.owner, let challenge = self[params.challengeID]?.challenge else { return }
        do throws(FetchFailure) { try parked.checkRoom(for: connection) } catch { return fetches.cancel(fetch, error) }
        let token = parked.add(params, TokenScope(connection))
        setPlace(.parked(token: token), of: params.challengeID)
        audit.recordQuestion(challenge, for: fetch, to: connection, at: "client")
        fetch.owner = nil
        connection.fetches.remove(fetch.id)
        fetch.usage = FetchUsage(in: connection.program.quotas, bytes: fetch.chargedBytes)
        guard let call = owner.call else { return }
        connection.complete(call, .success(.authRequired(Boxed(params), resume: token)))
    }

    /// `fetch/run` with a resume token: continues a parked fetch with `answer`. The resuming client gets the reply.
    func resume(
        _ token: String, with answer: ChallengeAnswer, _ call: Call<FetchRun>, from connection: ClientConnection
    ) throws {
        guard let entry = parked[token], entry.isFor(connection),
            let question = self[entry.params.challengeID], let fetch = fetches[question.fetch]
        else {
            throw RPCError(
                .unknownResume,
                "unknown resume token: it was already used or has expired; start the fetch again"
            )
        }
        unpark(token)
        fetch.owner = RunningFetch.Owner(
            connection: connection.id, call: call, requestID: connection.requestID(of: call.id))
        fetch.client = connection.auditClient
        fetch.belong(to: connection)
        audit.counters.challengesAnswered += 1
        resolve(question.id, with: answer, by: "client")
    }

    func unpark(_ token: String) {
        if let entry = parked.remove(token) { scheduleDelivery(at: entry.scope.connection) }
    }

    // MARK: Subscriptions

    func subscribe(_ params: AuthSubscribe, _ connection: ClientConnection) {
        connection.profile.subscription = params.subscription(after: connection.profile.subscription?.delivery)
        scheduleDelivery(at: connection.id)
    }

    /// `auth/unsubscribe`: running fetches continue without answers from this client.
    func unsubscribe(_ connection: ClientConnection) {
        connection.profile.subscription = nil
        leave(connection, because: .unregistered, where: \.isForSubscriber)
    }

    /// `agent/unregister`: open questions move to the next agent.
    func unregisterAgent(_ connection: ClientConnection) throws {
        guard let agent = connection.profile.agent else {
            throw RPCError(.invalidRequest, "this connection is not an agent")
        }
        connection.profile.agent = nil
        context.log.notice("agent unregistered", metadata: ["agent": "a\(agent.number)"])
        leave(connection, because: .unregistered, where: \.isForAgent)
        fetches.desks.programPrompts.leave(connection, because: .unregistered)
    }

    /// `auth/listPending`: returns the open challenges of this connection, and the challenges of parked fetches that
    /// the client may resume. If the session cache is not shared, only parked fetches of the same program are listed.
    func listPending(_ connection: ClientConnection) -> [AuthChallengeParams] {
        let isApart = context.options.sharing != .user
        // guard: pending-of-others
        let own = parked.all.filter { $0.isFor(connection) && (!isApart || $0.scope.isOfProgram(of: connection)) }
        let halves = own.map(\.params)
        return asked(connection.id).challenges.all + halves.sorted { $0.challengeID < $1.challengeID }
    }
}

internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// How a fetch begins.
extension Router {
    /// `fetch/run`: the reply comes with the response.
    func runFetch(
        _ call: ConnectionMachine.CallID, _ json: JSON?, from connection: ClientConnection
    ) throws {
        if let resume = try FetchResumeParams(json) { return try questions.resume(call, resume, from: connection) }
        let fetch = try makeFetch(json, of: connection, inSteps: false)
        fetch.owner = RunningFetch.Owner(
            connection: connection.id, call: call, requestID: connection.requestID(of: call))
        progress.report(on: fetch)
        perform(table.start(fetch.id, environment))
    }

    /// `fetch/start`: the reply comes at once, and notifications follow.
    func startFetch(
        _ call: ConnectionMachine.CallID, _ json: JSON?, from connection: ClientConnection
    ) throws {
        guard connection.holdings.bodies.heldCount + connection.fetches.count < Limits.openBodies else {
            throw RPCError(.busy, "This connection has \(Limits.openBodies) fetches in steps. Finish some first.")
        }
        try clients.checkRoomForBody(of: connection)
        let fetch = try makeFetch(json, of: connection, inSteps: true)
        fetch.owner = RunningFetch.Owner(
            connection: connection.id, call: nil, requestID: connection.requestID(of: call))
        let token = bodies.begin(fetch, of: connection)
        connection.complete(call, .success(["fetchId": .string("\(fetch.id)"), "attachToken": .string(token)]))
        progress.report(on: fetch)
        perform(table.start(fetch.id, environment))
    }

    private func makeFetch(
        _ json: JSON?, of connection: ClientConnection, inSteps: Bool
    ) throws -> RunningFetch {
        let params = try FetchRunParams(json)
        let subscription = connection.isSubscribed ? connection.subscription : nil
        try clients.checkRoom(for: params.heldBytes, of: connection)
        var plan = try FetchPlan(params, subscription: subscription, inSteps: inSteps)
        guard inSteps || params.attachedBody == nil else {
            throw InvalidParams("params.body of type attach goes with fetch/start, which gives a token for it")
        }
        guard params.handler == nil || subscription?.delivery != .result else {
            throw InvalidParams(
                "params.auth.handler goes with the deliveries request and notification of the connection")
        }
        plan.mayNameFiles = !connection.isConfined
        plan.isRestricted = connection.peer.entrance == .restricted
        do throws(FetchFailure) {
            try options.hosts.check(plan.url.origin)
        } catch {
            audit.recordDenial(error.kind, connection.cause, origin: plan.url.origin)
            throw error
        }
        noteSuspension()
        plan.givesBodyAgain = connection.subscription?.asksNeedBody ?? false
        let stream = params.attachedBody.map { bodies.makeStream($0, keepsCopy: !plan.givesBodyAgain, for: connection) }
        if let stream { plan.body = .stream(stream) }
        let id = table.add(
            plan, of: connection.id.tag, program: connection.program.tag, subjectNow(of: connection))
        var delivery = plan.subscription?.delivery ?? .none
        // There is no reply left that could be the question.
        if inSteps && delivery == .result { delivery = .notification }
        let fetch = RunningFetch(id: id, params: params, delivery: delivery, origin: plan.url.origin, since: clock.now)
        fetch.source = stream?.source
        fetch.client = connection.auditClient
        fetch.program = connection.peer.subject.text
        fetches[id] = fetch
        fetch.belong(to: connection)
        log.debug("fetch started", metadata: ["fetch": "\(id)", "origin": "\(plan.url.origin.text)"])
        return fetch
    }

    /// On whose behalf a client speaks now; what it was when it came is asked about no more where it has become another program.
    func subjectNow(of connection: ClientConnection) -> Subject {
        let first = connection.peer.subject
        guard options.sharing == .ask || first.isSandboxed else { return first }
        let now = connection.peer.subjectNow()
        guard first.strength == .none || first.mayBeStill(now) else {
            log.notice(
                "a client is not the program any more that it was when it connected",
                metadata: ["pid": "\(connection.peer.pid)"])
            return .unknown
        }
        return first
    }
}

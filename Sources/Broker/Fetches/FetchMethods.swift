internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The methods with which a client starts, lists and cancels its fetches.
final class FetchMethods {
    private let context: DeskContext
    private let audit: AuditRecorder
    private let clients: ClientRegistry
    private let session: SessionKeeper
    private let fetches: FetchRouter
    private let bodies: BodyDesk
    private let questions: QuestionDesk
    private let progress: ProgressReporter

    init(_ fetches: FetchRouter, _ progress: ProgressReporter) {
        (context, audit, clients) = (fetches.context, fetches.audit, fetches.clients)
        (session, bodies, questions) = (fetches.desks.session, fetches.desks.bodies, fetches.desks.questions)
        (self.fetches, self.progress) = (fetches, progress)
    }

    /// `fetch/run`: the reply comes with the response.
    func run(_ call: CallID, _ json: JSON?, from connection: ClientConnection) throws {
        if let resume = try FetchResumeParams(json) { return try questions.resume(call, resume, from: connection) }
        let fetch = try makeFetch(json, of: connection, inSteps: false)
        fetch.owner = RunningFetch.Owner(
            connection: connection.id, call: call, requestID: connection.requestID(of: call))
        progress.report(on: fetch)
        fetches.report { $0.start(fetch.id, $1) }
    }

    /// `fetch/start`: the reply comes at once, and notifications follow.
    func start(_ call: CallID, _ json: JSON?, from connection: ClientConnection) throws {
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
        fetches.report { $0.start(fetch.id, $1) }
    }

    private func makeFetch(_ json: JSON?, of connection: ClientConnection, inSteps: Bool) throws -> RunningFetch {
        let params = try FetchRunParams(json)
        let subscription = connection.isSubscribed ? connection.profile.subscription : nil
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
            try context.options.hosts.check(plan.url.origin)
        } catch {
            audit.recordDenial(error.kind, connection.cause, origin: plan.url.origin)
            throw error
        }
        session.noteSuspension()
        plan.givesBodyAgain = connection.profile.subscription?.asksNeedBody ?? false
        let stream = params.attachedBody.map { bodies.makeStream($0, keepsCopy: !plan.givesBodyAgain, for: connection) }
        if let stream { plan.body = .stream(stream) }
        let (program, subject) = (connection.program.tag, subjectNow(of: connection))
        let id = fetches.change { $0.add(plan, of: connection.id.tag, program: program, subject) }
        var delivery = plan.subscription?.delivery ?? .none
        // There is no reply left that could be the question.
        if inSteps && delivery == .result { delivery = .notification }
        let fetch = RunningFetch(
            id: id, params: params, delivery: delivery, origin: plan.url.origin, since: context.now)
        fetch.source = stream?.source
        fetch.client = connection.auditClient
        fetch.program = connection.peer.subject.text
        fetches.add(fetch)
        fetch.belong(to: connection)
        context.log.debug("fetch started", metadata: ["fetch": "\(id)", "origin": "\(plan.url.origin.text)"])
        return fetch
    }

    /// On whose behalf a client speaks now; what it was when it came is asked about no more where it has become another program.
    private func subjectNow(of connection: ClientConnection) -> Subject {
        let first = connection.peer.subject
        guard context.options.sharing == .ask || first.isSandboxed else { return first }
        let now = connection.peer.subjectNow()
        guard first.strength == .none || first.mayBeStill(now) else {
            context.log.notice(
                "a client is not the program any more that it was when it connected",
                metadata: ["pid": "\(connection.peer.pid)"])
            return .unknown
        }
        return first
    }

    // MARK: Listing and cancelling

    /// What a fetch does, as `fetch/list` shows it.
    private func word(for fetch: RunningFetch) -> String {
        if fetch.transfer != nil { return "transferring" }
        guard let question = questions.question(of: fetch) else { return "waiting" }
        if case .body = question.content { return "waiting" }
        return "challenged"
    }

    func list(of connection: ClientConnection) -> JSON {
        let own = connection.fetches.compactMap { fetches[$0] }
        let running = own.sorted { $0.id.number < $1.id.number }.map { fetch -> JSON in
            let wait = fetches.table.wait(of: fetch.id)
            let entry: JSON = [
                "fetchId": .string("\(fetch.id)"), "url": .string(fetch.params.url),
                "method": .string(fetch.params.method),
                "state": .string(wait == nil ? word(for: fetch) : "waiting"),
                "runningMs": .integer((context.now - fetch.since).wholeMilliseconds),
            ]
            return wait.map { entry.adding($0.json(now: context.now)) } ?? entry
        }
        let held = bodies.names(of: connection).map { id -> JSON in ["fetchId": .string(id), "state": "holding"] }
        return ["fetches": .array(running + held)]
    }

    func cancel(_ params: FetchReference, of connection: ClientConnection) throws -> JSON {
        if let id = FetchID(params.fetchID), connection.fetches.contains(id), let fetch = fetches[id] {
            fetches.cancel(fetch)
            return ["cancelled": true]
        }
        return ["cancelled": .boolean(bodies.drop(params.fetchID, of: connection))]
    }
}

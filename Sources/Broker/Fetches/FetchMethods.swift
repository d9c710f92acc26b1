internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The methods that start, list and cancel fetches.
final class FetchMethods {
    private let context: DeskContext
    private let audit: AuditRecorder
    private let clients: ClientRegistry
    private let session: SessionDesk
    private let fetches: FetchRouter
    private let bodies: BodyDesk
    private let questions: QuestionDesk
    private let progress: ProgressReporter

    init(_ fetches: FetchRouter, _ progress: ProgressReporter) {
        (context, audit, clients) = (fetches.context, fetches.audit, fetches.clients)
        (session, bodies, questions) = (fetches.desks.session, fetches.desks.bodies, fetches.desks.questions)
        (self.fetches, self.progress) = (fetches, progress)
    }

    /// `fetch/run`: the call is answered when the fetch ends.
    func run(_ params: FetchRunParams, _ call: Call<FetchRun>, from connection: ClientConnection) throws {
        let fetch = try makeFetch(params, of: connection, connection.requestID(of: call.id), replyTo: call)
        progress.report(on: fetch)
        fetches.report(.started, of: fetch.id)
    }

    /// `fetch/start`: the call is answered at once, and notifications follow.
    func start(_ params: FetchRunParams, _ call: Call<FetchStart>, from connection: ClientConnection) throws {
        guard connection.quotas.bodies.usage + connection.fetches.count < Limits.openBodies else {
            throw RPCError(
                .busy,
                "too many fetches and unread bodies on this connection (limit \(Limits.openBodies)); finish one first")
        }
        try clients.checkRoomForBody(of: connection)
        let fetch = try makeFetch(params, of: connection, connection.requestID(of: call.id))
        let token = bodies.begin(fetch, of: connection)
        connection.complete(call, .success((fetchID: "\(fetch.id)", attachToken: token)))
        progress.report(on: fetch)
        fetches.report(.started, of: fetch.id)
    }

    /// Starts the fetch that answers a request to a front.
    func start(_ exchange: FrontExchange, of connection: ClientConnection, _ answer: FrontAnswer) throws -> RunningFetch
    {
        try clients.checkRoomForBody(of: connection)
        let fetch = try makeFetch(exchange.params, exchange.url, of: connection) { exchange.adapt(&$0) }
        (fetch.answer, answer.fetch) = (answer, fetch.id)
        fetches.report(.started, of: fetch.id)
        return fetch
    }

    /// Starts a fetch of the broker itself.
    /// - Parameter connection: the client that is asked if the request needs a login; `nil` for none.
    func start(
        _ oauth: OAuthRequest, for connection: ClientConnection?,
        completion: @escaping RunningFetch.Completion
    ) throws {
        var params = FetchRunParams(oauth)
        let client = oauth.usesCredentials ? connection : nil
        // A sandboxed program could log in with an account of its own, which others would then use.
        if client?.isConfined == true, params.interaction == .ownClient { params.interaction = .agent }
        var draft = try FetchRequest(
            params, subscription: client.flatMap { $0.isSubscribed ? $0.profile.subscription : nil })
        if !oauth.usesCredentials { draft.originLogin = .program(oauth.authorization) }
        draft.options.delivery = .whole
        (draft.mayNameFiles, draft.isLoginStep, draft.logsInFirst) = (false, true, oauth.needsLogin)
        // A code or a refresh token that arrives twice ends the login.
        draft.needsNewConnection = oauth.body != nil
        try context.rules.hosts.check(draft.url.origin)
        let request = fetches.change {
            $0.add(draft, of: client?.id.tag ?? .broker, program: client?.program.tag, client.map(currentSubject))
        }
        let fetch = RunningFetch(
            request, of: client, chargedBytes: params.chargedBytes, since: context.now, completion: completion)
        fetches.add(fetch)
        fetches.report(.started, of: fetch.id)
    }

    /// - Parameters:
    ///   - url: that of `params`, if it is parsed already.
    ///   - call: the call that the result answers; `nil` for a stepwise fetch.
    ///   - adapt: changes the request before the fetch is added.
    private func makeFetch(
        _ params: FetchRunParams, _ url: FetchURL? = nil, of connection: ClientConnection,
        _ requestID: RequestID = .null, replyTo call: Call<FetchRun>? = nil,
        adapt: (inout FetchRequest) -> Void = { _ in }
    ) throws -> RunningFetch {
        let inSteps = call == nil
        let subscription = connection.isSubscribed ? connection.profile.subscription : nil
        try clients.checkRoom(for: params.chargedBytes, of: connection)
        var draft = try FetchRequest(params, subscription: subscription, inSteps: inSteps, url: url)
        guard inSteps || params.attachedBody == nil else {
            throw InvalidParams("params.body of type attach is valid only in fetch/start, which returns a token for it")
        }
        adapt(&draft)
        draft.mayNameFiles = !connection.isConfined
        draft.isRestricted = connection.peer.socketKind == .restricted
        do throws(FetchFailure) {
            try context.rules.hosts.check(draft.url.origin)
        } catch {
            audit.recordDenial(error.kind, connection.cause, origin: draft.url.origin)
            throw error
        }
        session.handleSuspension()
        draft.canResendBody = connection.profile.subscription?.asksNeedBody ?? false
        let storesCopy = !draft.canResendBody && !draft.options.switchesProtocol
        let stream = params.attachedBody.map { bodies.makeStream($0, storesCopy: storesCopy, for: connection) }
        if let stream { draft.body = .stream(stream) }
        let (program, subject) = (connection.program.tag, currentSubject(of: connection))
        let request = fetches.change { $0.add(draft, of: connection.id.tag, program: program, subject) }
        let fetch = RunningFetch(
            request, of: connection, requestID, replyTo: call, chargedBytes: params.chargedBytes, since: context.now)
        fetch.source = stream?.source
        fetches.add(fetch)
        context.log.debug("fetch started", metadata: ["fetch": "\(fetch.id)", "origin": "\(fetch.origin.text)"])
        return fetch
    }

    /// Returns the subject of a client. Returns `unknown` if the process has become another program since it connected, or may
    /// have been another one when it sent the message, and the subject without its script if it no longer runs that. Both are checked only if programs need consent or the
    /// client is sandboxed.
    private func currentSubject(of connection: ClientConnection) -> Subject {
        let first = connection.peer.subject
        guard context.options.sharing == .ask || first.isSandboxed else { return first }
        // guard: consent-identified-first
        if connection.isEarly, first.strength == .weak { return .unknown }
        let now = connection.peer.currentSubject
        guard first.strength == .none || first.couldStillBe(now) else {  // guard: consent-another-program-now
            context.log.notice(
                "a client has become another program since it connected",
                metadata: ["pid": "\(connection.peer.pid)"])
            return .unknown
        }
        return first.confirmed(by: now)
    }

    // MARK: Listing and cancelling

    /// Returns the state of a fetch that does not wait for another one, for `fetch/list`.
    private func word(for fetch: RunningFetch) -> String {
        if fetch.transfer != nil { return "transferring" }
        guard let question = questions.question(of: fetch) else { return "waiting" }
        if case .body = question.content { return "waiting" }
        return "challenged"
    }

    func list(of connection: ClientConnection) -> [FetchList.Entry] {
        let own = connection.fetches.compactMap { fetches[$0] }
        let running = own.sorted { $0.id.number < $1.id.number }.map { fetch -> FetchList.Entry in
            let wait = fetches.table.wait(of: fetch.id)
            return .running(
                "\(fetch.id)", url: fetch.request.url.text, method: fetch.request.method,
                state: wait == nil ? word(for: fetch) : "waiting", since: context.now - fetch.since,
                wait: wait?.json(now: context.now))
        }
        return running + bodies.names(of: connection).map { .holding($0) }
    }

    /// `fetch/cancel`: returns whether there was a fetch or an open body with this ID.
    func cancel(_ name: String, of connection: ClientConnection) -> Bool {
        if let id = FetchID(name), connection.fetches.contains(id), let fetch = fetches[id] {
            fetches.cancel(fetch)
            return true
        }
        return bodies.drop(name, of: connection)
    }
}

extension FetchRunParams {
    /// The parameters of a request to an authorization server.
    fileprivate init(_ request: OAuthRequest) {
        self.init(url: request.url.text)
        method = request.body == nil ? "GET" : "POST"
        (headers, body) = (request.headers, request.body)
        // Codes and tokens go nowhere else (RFC 9700 section 4.12).
        maxRedirects = 0  // guard: oauth-no-redirect
        interaction = !request.mayAsk ? .none : request.usesCredentials ? .ownClient : .agent
        (timeoutMs, maxBodyBytes) = (30_000, 256 << 10)
    }
}

extension ClientTag {
    /// The broker itself.
    fileprivate static let broker = ClientTag(value: -1)
}

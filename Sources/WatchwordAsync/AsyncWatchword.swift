public import JSONText
public import WatchwordClient
public import WatchwordProtocol

/// A client of the broker for concurrent programs: any number of fetches at a time, on one connection.
///
///     let broker = try await AsyncWatchword()
///     async let report = broker.fetch("https://intranet.example/report") { _ in .login(user: "bob", password: secret) }
///     async let news = broker.fetch("https://intranet.example/news")
///
/// If the task of a call is cancelled, the call throws `CancellationError` and is cancelled at the broker. All other errors are
/// of the type `ClientFailure`. Requests are sent by the calling task, which is blocked until the broker has read them; the
/// broker does that at once.
public actor AsyncWatchword {
    /// Answers a challenge. An error cancels the fetch. The task of the handler is cancelled when the broker withdraws the
    /// challenge, for example because its fetch was cancelled.
    public typealias ChallengeHandler = @Sendable (Watchword.Challenge) async throws -> Watchword.Answer

    private struct Call {
        let continuation: CheckedContinuation<JSON, any Error>
        let handler: ChallengeHandler?
    }

    private let channel: AsyncChannel
    private let onResolved: @Sendable (JSON) -> Void
    /// The calls without a reply, by their ids.
    private var calls: [Int: Call] = [:]
    private var lastID = 0
    /// The running handlers, by the ids of the broker's requests.
    private var questions: [RequestID: Task<Void, Never>] = [:]
    /// The fetches whose bodies have not been read to their ends.
    private var openBodies: Set<String> = []
    /// Why the connection has ended; `nil` until then.
    private var failure: ClientFailure?

    /// Connects to the broker at `socket`; `nil` for the default path (`SocketLocation`).
    /// - Parameter onResolved: called with the parameters of `auth/resolved`, which report the result of an answer, before the
    ///   fetch returns.
    public init(
        name: String = "swift", socket: String? = nil, onResolved: @escaping @Sendable (JSON) -> Void = { _ in }
    ) async throws {
        channel = try AsyncChannel(connectingTo: SocketLocation(ofThisProcess: socket))
        self.onResolved = onResolved
        Task { [weak self, events = channel.events] in
            for await event in events { await self?.take(event) }
        }
        try await call(Initialize(clientName: name, clientVersion: WatchwordVersion.current, delivery: nil))
    }

    /// Closes the connection, which cancels its fetches. It is also closed with the last reference to this object.
    public func close() {
        channel.close()
        end(.connectionLost)
    }

    // MARK: Fetches

    /// Fetches `url` and reads the whole body.
    /// - Parameter answer: answers the challenges of this fetch; without it, an agent is asked.
    public func fetch(_ url: String, answer: ChallengeHandler? = nil) async throws -> Watchword.Response {
        try await fetch(FetchRunParams(url: url), answer: answer)
    }

    /// Fetches with any parameters of `fetch/run`, and reads the whole body.
    public func fetch(_ params: FetchRunParams, answer: ChallengeHandler? = nil) async throws -> Watchword.Response {
        let stream = try await stream(params, answer: answer)
        var body: [UInt8] = []
        for try await part in stream.body { body += part }
        return Watchword.Response(stream.details, body: body)
    }

    /// Fetches with any parameters of `fetch/run`. Returns when the response has begun, or with a short body when it is complete.
    public func stream(_ params: FetchRunParams, answer: ChallengeHandler? = nil) async throws -> ResponseStream {
        var params = params
        if answer != nil { params.handler = params.handler ?? Subscription(delivery: .request) }
        let result = try await call(FetchRun.name, FetchRun(params).json, answer)
        let head = Watchword.Response(result, body: [])
        if let fetchID = result["body"]?["fetchId"]?.string {
            openBodies.insert(fetchID)
            let body = UnreadBody(fetchID, of: self)
            return ResponseStream(head, ResponseStream.Body(inline: nil, rest: body))
        }
        guard let bytes = result["body"].flatMap(BodyValue.bytes) else { throw Self.unreadable }
        return ResponseStream(head, ResponseStream.Body(inline: bytes, rest: nil))
    }

    private static let unreadable = ClientFailure.protocolViolation("malformed body")

    /// Returns the next part of a body; `nil` at its end.
    func nextPart(of fetchID: String) async throws -> [UInt8]? {
        guard openBodies.contains(fetchID) else { return nil }
        guard let part = FetchReadResult(try await call(FetchRead(fetchID: fetchID))) else { throw Self.unreadable }
        if part.isAtEnd { openBodies.remove(fetchID) }
        return part.isAtEnd && part.data.isEmpty ? nil : part.data
    }

    /// Cancels a fetch whose body was not read to its end.
    func discardBody(of fetchID: String) {
        guard openBodies.remove(fetchID) != nil else { return }
        sendCancel(fetchID)
    }

    // MARK: Calls

    /// Calls a method of the protocol.
    @discardableResult
    public func call(_ method: some CallableMethod & Sendable) async throws -> JSON {
        try await call(type(of: method).name, method.json, nil)
    }

    private func call(_ method: String, _ params: JSON, _ handler: ChallengeHandler?) async throws -> JSON {
        try Task.checkCancellation()
        if let failure { throw failure }
        lastID += 1
        let id = lastID
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                calls[id] = Call(continuation: continuation, handler: handler)
                do throws(ClientFailure) {
                    try channel.send(.request(id: .integer(id), method: method, params: params))
                } catch {
                    end(error)
                }
            }
        } onCancel: {
            Task { await self.cancel(id) }
        }
    }

    private func cancel(_ id: Int) {
        guard let call = calls.removeValue(forKey: id) else { return }
        try? channel.send(.notification(method: "$/cancelRequest", params: CancelRequestParams(id: .integer(id)).json))
        call.continuation.resume(throwing: CancellationError())
    }

    /// The reply is ignored: with or without an error, the fetch has ended.
    private func sendCancel(_ fetchID: String) {
        lastID += 1
        let params = FetchCancel(fetchID: fetchID).json
        try? channel.send(.request(id: .integer(lastID), method: FetchCancel.name, params: params))
    }

    // MARK: Messages

    private func take(_ event: AsyncChannel.Event) {
        switch event {
        case .success(.result(.integer(let id), let result)):
            if let call = calls.removeValue(forKey: id) {
                call.continuation.resume(returning: result)
            } else if let fetchID = result["body"]?["fetchId"]?.string {
                // The call was cancelled after the broker had sent this reply.
                sendCancel(fetchID)
            }
        case .success(.error(.integer(let id), let error)):
            calls.removeValue(forKey: id)?.continuation.resume(throwing: ClientFailure.refused(error))
        case .success(.request(let id, let method, let params)):
            receive(id, method, params ?? [:])
        case .success(.notification(BrokerMethodName.cancelRequest.rawValue, let params)):
            if let id = (try? CancelRequestParams(Members(params)))?.id { questions.removeValue(forKey: id)?.cancel() }
        case .success(.notification(BrokerMethodName.authResolved.rawValue, let params)):
            onResolved(params ?? [:])
        case .success(.result), .success(.error), .success(.notification), .success(.malformedReply), .success(.empty),
            .success(.invalid):
            break
        case .failure(let failure):
            end(failure)
        }
    }

    /// Starts the handler of the fetch that the challenge belongs to.
    private func receive(_ id: RequestID, _ method: String, _ params: JSON) {
        guard method == BrokerMethodName.authChallenge.rawValue, let call = params["requestId"]?.integer,
            let handler = calls[call]?.handler
        else {
            let error = RPCError(.methodNotFound, "this client does not answer \(method.shortened)")
            try? channel.send(.error(id: id, error))
            return
        }
        questions[id] = Task {
            let answer = (try? await handler(Watchword.Challenge(params))) ?? .cancel
            reply(to: id, answer)
        }
    }

    /// Sends an answer, unless the challenge was withdrawn.
    private func reply(to id: RequestID, _ answer: Watchword.Answer) {
        guard questions.removeValue(forKey: id) != nil else { return }
        try? channel.send(.result(id: id, AgentAnswer(answer.challengeAnswer).json))
    }

    private func end(_ failure: ClientFailure) {
        self.failure = self.failure ?? failure
        for question in questions.values { question.cancel() }
        for call in calls.values { call.continuation.resume(throwing: failure) }
        (questions, calls, openBodies) = ([:], [:], [])
    }
}

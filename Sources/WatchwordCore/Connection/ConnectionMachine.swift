public import JSONText
public import WatchwordProtocol

/// The JSON-RPC 2.0 protocol of one connection: turns received bytes into events, and results and requests into bytes
/// to send. Independent of the methods and of I/O.
///
/// After a framing error the connection is closed, and further bytes are ignored. Each call is answered exactly once;
/// each request to the peer is settled at most once.
public struct ConnectionMachine: ~Copyable {
    /// Identifies an unanswered call of the peer. The peer's request id does not identify it: several calls may have
    /// the id `null`.
    public struct CallID: Hashable, Sendable {
        let value: Int
    }

    public enum Event: Sendable, Equatable {
        /// A request, to be answered with `complete`.
        case call(CallID, method: String, params: JSON?)
        case notification(method: String, params: JSON?)
        /// The peer has cancelled this call; it still has to be completed.
        case cancel(CallID)
        /// The peer's reply to a request of the broker.
        case reply(request: Int, Reply)
        case send([UInt8])
        /// Close the connection once everything has been sent.
        case close
    }

    public enum Reply: Sendable, Equatable {
        case result(JSON)
        case error(RPCError)
        /// A malformed or incomplete reply; see `IncomingMessage.malformedReply` and `IncomingMessage.empty`.
        case broken
    }

    private var decoder: FrameDecoder
    private var isClosed = false
    private var calls = OpenCalls()
    private var batches = BatchCollector()
    private var requests = OpenRequests()
    /// The number of replies that match no open request (late, repeated or invalid), of unknown notifications, and of notifications
    /// with invalid parameters.
    public private(set) var ignoredMessages = 0
    /// The number of invalid messages since the last request or expected reply.
    private var invalidMessages = 0
    /// The number of complete messages received, valid or not.
    public private(set) var messageCount = 0

    public init(maxMessageBytes: Int = Limits.messageBytes) {
        decoder = FrameDecoder(maxMessageBytes: maxMessageBytes)
    }

    public var openCallCount: Int { calls.count }

    /// The number of buffered bytes that are not yet a complete message.
    public var unreadCount: Int { decoder.bufferedCount }

    /// The size in bytes of the partial message; `nil` between two messages.
    public var unfinishedCount: Int? { isClosed ? nil : decoder.unfinishedCount }

    /// The size in bytes of the replies in incomplete batches.
    public var pendingReplyBytes: Int { batches.chargedBytes }

    /// Returns the request id that the peer gave a call; `null` after the call was answered.
    public func requestID(of call: CallID) -> RequestID { calls.requestID(of: call) ?? .null }

    // MARK: From the peer

    public mutating func received(_ bytes: UnsafeRawBufferPointer) -> [Event] {
        guard !isClosed else { return [] }
        var messages: [Result<JSON, RPCError>] = []
        do throws(FramingFailure) {
            try decoder.feed(bytes) { messages.append(Self.parse($0)) }
        } catch {
            return messages.flatMap { handle($0) } + abortConnection("\(error)")
        }
        messageCount += messages.count
        // A fast path: a read rarely contains more than one message.
        return messages.count == 1 ? handle(messages[0]) : messages.flatMap { handle($0) }
    }

    private static func parse(_ event: FrameDecoder.Event) -> Result<JSON, RPCError> {
        guard case .message(let text) = event else {
            return .failure(
                RPCError(.tooLarge, "message skipped: too large (limit \(Limits.messageBytes) bytes)"))
        }
        do throws(JSONFailure) {
            let limits = JSONLimits(depth: Limits.messageDepth, values: Limits.messageValues)
            return .success(try JSON.parse(text, limits: limits))
        } catch {
            return .failure(RPCError(.parseError, "\(error)"))
        }
    }

    /// Reports a protocol violation to the peer and closes the connection; unread data is dropped.
    public mutating func abortConnection(_ reason: String) -> [Event] {
        guard !isClosed else { return [] }
        isClosed = true
        decoder.dropUnread()
        return [
            .send(frame(.error(id: .null, RPCError(.protocolViolation, "\(reason); connection closed")))),
            .close,
        ]
    }

    private mutating func handle(_ message: Result<JSON, RPCError>) -> [Event] {
        guard !isClosed else { return [] }
        return switch message {
        case .failure(let error): countInvalid([.send(frame(.error(id: .null, error)))])
        case .success(let json): json.elements.map { handleBatch($0) } ?? handle(IncomingMessage(json), slot: nil)
        }
    }

    private mutating func handleBatch(_ entries: [JSON]) -> [Event] {
        guard !entries.isEmpty, entries.count <= Limits.batchEntries else {
            let problem = entries.isEmpty ? "empty batch" : "batch too large (limit \(Limits.batchEntries) entries)"
            return countInvalid([.send(frame(.error(id: .null, RPCError(.invalidRequest, problem))))])
        }
        let messages = entries.map { $0.kind == .array ? .nestedBatch : IncomingMessage($0) }
        let expected = messages.filter(\.expectsReply).count
        guard expected > 0 else { return messages.flatMap { handle($0, slot: nil) } }
        let batch = batches.open(expecting: expected)
        var position = 0
        return messages.flatMap { message in
            guard message.expectsReply else { return handle(message, slot: nil) }
            defer { position += 1 }
            return handle(message, slot: BatchCollector.Slot(batch: batch, position: position))
        }
    }

    private mutating func handle(_ message: IncomingMessage, slot: BatchCollector.Slot?) -> [Event] {
        switch message {
        case .request(let id, let method, let params):
            return open(id, method, params, slot: slot)
        case .notification(BrokerMethodName.cancelRequest.rawValue, let params):
            guard let id = try? CancelRequestParams(params).id else {
                ignoredMessages += 1
                return []
            }
            return calls[id].map { [.cancel($0)] } ?? []
        case .notification(let method, let params):
            ignoredMessages += 1
            return [.notification(method: method, params: params)]
        case .result(let id, let result):
            return settle(id, .result(result))
        case .error(let id, let error):
            return settle(id, .error(error))
        case .malformedReply(let id):
            return settle(id, .broken)
        case .empty(.integer(let number), _) where slot == nil && requests.contains(number):
            return settle(.integer(number), .broken)
        case .empty(let id, let reason), .invalid(let id, let reason):
            return countInvalid(reply(.error(id: id, RPCError(.invalidRequest, reason)), slot: slot))
        }
    }

    /// Counts an invalid message, and aborts the connection after too many in a row.
    private mutating func countInvalid(_ events: [Event]) -> [Event] {
        invalidMessages += 1
        guard invalidMessages > Limits.invalidMessages else { return events }
        let limit = Limits.invalidMessages
        return events
            + abortConnection("more than \(limit) consecutive messages are neither requests nor replies")
    }

    private mutating func open(
        _ id: RequestID, _ method: String, _ params: JSON?, slot: BatchCollector.Slot?
    ) -> [Event] {
        guard calls.count < Limits.requestsInFlight else {
            let text =
                "too many open requests on this connection (limit \(Limits.requestsInFlight)); wait for replies"
            return reply(.error(id: id, RPCError(.busy, text)), slot: slot)
        }
        guard calls[id] == nil else {  // guard: request-id-twice
            let text = "duplicate id: a request with this id is pending; use another one"
            return reply(.error(id: id, RPCError(.invalidRequest, text)), slot: slot)
        }
        invalidMessages = 0
        return [.call(calls.open(id, slot), method: method, params: params)]
    }

    private mutating func settle(_ id: RequestID, _ reply: Reply) -> [Event] {
        guard case .integer(let number) = id, requests.settle(number) else {  // guard: reply-once
            ignoredMessages += 1
            return countInvalid([])
        }
        invalidMessages = 0
        return [.reply(request: number, reply)]
    }

    // MARK: To the peer

    /// Answers a call. Returns the bytes to send, or `nil` if its batch is incomplete or if the call was answered
    /// before.
    public mutating func complete(_ call: CallID, _ result: Result<JSON, RPCError>) -> [UInt8]? {
        guard let open = calls.close(call) else { return nil }
        let message: OutgoingMessage =
            switch result {
            case .success(let result): .result(id: open.id, result)
            case .failure(let error): .error(id: open.id, error)
            }
        guard let slot = open.slot else { return frame(message) }
        return batches.fill(slot, with: message).map { framing.frame(text: $0) }
    }

    /// Sends a request; its reply arrives as `Event.reply` with the same number.
    public mutating func request(method: String, params: JSON) -> (number: Int, bytes: [UInt8]) {
        let number = requests.open()
        return (number, frame(.request(id: .integer(number), method: method, params: params)))
    }

    /// Cancels a request. Returns the notification to send, or `nil` if the request was settled before. A late reply is
    /// ignored.
    public mutating func withdraw(request number: Int) -> [UInt8]? {
        guard requests.settle(number) else { return nil }
        return notification(
            method: BrokerMethodName.cancelRequest.rawValue, params: CancelRequestParams(id: .integer(number)).json)
    }

    public func notification(method: String, params: JSON) -> [UInt8] {
        frame(.notification(method: method, params: params))
    }

    private mutating func reply(_ message: OutgoingMessage, slot: BatchCollector.Slot?) -> [Event] {
        guard let slot else { return [.send(frame(message))] }
        return batches.fill(slot, with: message).map { [.send(framing.frame(text: $0))] } ?? []
    }

    private func frame(_ message: OutgoingMessage) -> [UInt8] { framing.frame(message) }

    private func frame(_ json: JSON) -> [UInt8] { framing.frame(json) }

    private var framing: Framing { decoder.framing ?? .lines }
}

extension IncomingMessage {
    fileprivate static let nestedBatch = IncomingMessage.invalid(id: .null, reason: "a batch must not contain a batch")

    fileprivate var expectsReply: Bool {
        switch self {
        case .request, .empty, .invalid: true
        case .notification, .result, .error, .malformedReply: false
        }
    }
}

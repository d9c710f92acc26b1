public import JSONText
public import WatchwordProtocol

/// JSON-RPC 2.0 on one connection, both ways: bytes in, events out; results in, bytes out. It knows no method.
///
/// A connection is open until its framing breaks; then it is `closed`, and all further bytes are ignored. Each call is
/// answered exactly once, each request to the peer is settled at most once.
public struct ConnectionMachine: ~Copyable {
    /// Names a call of the peer until it is answered. The peer's own ids are not unique: many calls may have the id `null`.
    public struct CallID: Hashable, Sendable {
        let value: Int
    }

    public enum Event: Sendable, Equatable {
        /// To be answered with `complete`.
        case call(CallID, method: String, params: JSON?)
        case notification(method: String, params: JSON?)
        /// The peer no longer wants this call; it still has to be completed.
        case cancel(CallID)
        /// The peer's answer to a request of ours.
        case reply(request: Int, Reply)
        case send([UInt8])
        /// Close once everything has been sent.
        case close
    }

    public enum Reply: Sendable, Equatable {
        case result(JSON)
        case error(RPCError)
        /// Neither or both of result and error.
        case broken
    }

    private struct OpenCall {
        let id: RequestID
        let slot: BatchCollector.Slot?
    }

    private var decoder: FrameDecoder
    private var isClosed = false
    private var calls: [CallID: OpenCall] = [:]
    private var callsByID: [RequestID: CallID] = [:]
    private var lastCall = 0
    private var batches = BatchCollector()
    private var openRequests: Set<Int> = []
    private var lastRequest = 0
    /// Replies that answered nothing: late, repeated, or made up.
    public private(set) var ignoredReplies = 0
    /// Since the last one that was a request, or an answer to one.
    private var senselessMessages = 0
    /// Messages that are complete, whatever they are.
    public private(set) var messageCount = 0

    public init(maxMessageBytes: Int = Limits.messageBytes) {
        decoder = FrameDecoder(maxMessageBytes: maxMessageBytes)
    }

    public var openCallCount: Int { calls.count }

    /// Bytes of the peer that are no whole message yet.
    public var unreadCount: Int { decoder.bufferedCount }

    /// How much has come of a message that is not complete; `nil` between two messages.
    public var unfinishedCount: Int? { isClosed ? nil : decoder.unfinishedCount }

    /// Of replies that wait for others of their batch.
    public var heldReplyBytes: Int { batches.heldBytes }

    /// The peer's own id of a call; `null` once it was answered.
    public func requestID(of call: CallID) -> RequestID { calls[call]?.id ?? .null }

    // MARK: From the peer

    public mutating func received(_ bytes: UnsafeRawBufferPointer) -> [Event] {
        guard !isClosed else { return [] }
        var messages: [Result<JSON, RPCError>] = []
        do throws(FramingFailure) {
            try decoder.feed(bytes) { messages.append(Self.parse($0)) }
        } catch {
            return messages.flatMap { handle($0) } + breakOff("\(error)")
        }
        messageCount += messages.count
        // One message to a read is by far the most frequent case.
        return messages.count == 1 ? handle(messages[0]) : messages.flatMap { handle($0) }
    }

    private static func parse(_ event: FrameDecoder.Event) -> Result<JSON, RPCError> {
        guard case .message(let text) = event else {
            return .failure(
                RPCError(.tooLarge, "A message is larger than \(Limits.messageBytes) bytes. It was skipped."))
        }
        do throws(JSONFailure) {
            let limits = JSONLimits(depth: Limits.messageDepth, values: Limits.messageValues)
            return .success(try JSON.parse(text, limits: limits))
        } catch {
            return .failure(RPCError(.parseError, "\(error)"))
        }
    }

    /// The peer has done what nobody may: it is told why, and nothing more is read.
    public mutating func breakOff(_ reason: String) -> [Event] {
        guard !isClosed else { return [] }
        isClosed = true
        decoder.dropUnread()
        return [
            .send(frame(.error(id: .null, RPCError(.protocolViolation, "\(reason). The connection is closed.")))),
            .close,
        ]
    }

    private mutating func handle(_ message: Result<JSON, RPCError>) -> [Event] {
        guard !isClosed else { return [] }
        return switch message {
        case .failure(let error): senseless([.send(frame(.error(id: .null, error)))])
        case .success(let json): json.elements.map { handleBatch($0) } ?? handle(IncomingMessage(json), slot: nil)
        }
    }

    private mutating func handleBatch(_ entries: [JSON]) -> [Event] {
        guard !entries.isEmpty, entries.count <= Limits.batchEntries else {
            let problem = entries.isEmpty ? "a batch is empty" : "a batch has more than \(Limits.batchEntries) entries"
            return senseless([.send(frame(.error(id: .null, RPCError(.invalidRequest, problem))))])
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
            guard let id = try? CancelRequestParams(params).id, let call = callsByID[id] else { return [] }
            return [.cancel(call)]
        case .notification(let method, let params):
            return [.notification(method: method, params: params)]
        case .result(let id, let result):
            return settle(id, .result(result))
        case .error(let id, let error):
            return settle(id, .error(error))
        case .brokenReply(let id):
            return settle(id, .broken)
        case .empty(.integer(let number), _) where slot == nil && openRequests.contains(number):
            return settle(.integer(number), .broken)
        case .empty(let id, let reason):
            return senseless(reply(.error(id: id, RPCError(.invalidRequest, reason)), slot: slot))
        case .invalid(let id, let reason):
            return senseless(reply(.error(id: id, RPCError(.invalidRequest, reason)), slot: slot))
        }
    }

    /// Some are an accident; who goes on with it would only cost the others time.
    private mutating func senseless(_ events: [Event]) -> [Event] {
        senselessMessages += 1
        guard senselessMessages > Limits.senselessMessages else { return events }
        let limit = Limits.senselessMessages
        return events + breakOff("more than \(limit) messages in a row are neither a request nor an answer to one")
    }

    private mutating func open(
        _ id: RequestID, _ method: String, _ params: JSON?, slot: BatchCollector.Slot?
    ) -> [Event] {
        guard calls.count < Limits.requestsInFlight else {
            let text =
                "More than \(Limits.requestsInFlight) requests are open on this connection. Wait for replies first."
            return reply(.error(id: id, RPCError(.busy, text)), slot: slot)
        }
        guard callsByID[id] == nil else {
            return reply(.error(id: id, RPCError(.invalidRequest, "a request with this id is still open")), slot: slot)
        }
        senselessMessages = 0
        lastCall += 1
        let call = CallID(value: lastCall)
        calls[call] = OpenCall(id: id, slot: slot)
        if id != .null { callsByID[id] = call }
        return [.call(call, method: method, params: params)]
    }

    private mutating func settle(_ id: RequestID, _ reply: Reply) -> [Event] {
        guard case .integer(let number) = id, openRequests.remove(number) != nil else {
            ignoredReplies += 1
            return senseless([])
        }
        senselessMessages = 0
        return [.reply(request: number, reply)]
    }

    // MARK: To the peer

    /// Answers a call. `nil` when there is nothing to send yet (its batch is not complete), or the call was answered before.
    public mutating func complete(_ call: CallID, _ result: Result<JSON, RPCError>) -> [UInt8]? {
        guard let open = calls.removeValue(forKey: call) else { return nil }
        callsByID[open.id] = nil
        let message: OutgoingMessage =
            switch result {
            case .success(let result): .result(id: open.id, result)
            case .failure(let error): .error(id: open.id, error)
            }
        guard let slot = open.slot else { return frame(message) }
        return batches.fill(slot, with: message.json).map { framing.frame(text: $0) }
    }

    /// Sends a request; its reply comes as `Event.reply` with the same number.
    public mutating func request(method: String, params: JSON) -> (number: Int, bytes: [UInt8]) {
        lastRequest += 1
        openRequests.insert(lastRequest)
        return (lastRequest, frame(.request(id: .integer(lastRequest), method: method, params: params)))
    }

    /// Takes a request back. A reply that is on its way is ignored. `nil` when it was settled before.
    public mutating func withdraw(request number: Int) -> [UInt8]? {
        guard openRequests.remove(number) != nil else { return nil }
        return notification(
            method: BrokerMethodName.cancelRequest.rawValue, params: CancelRequestParams(id: .integer(number)).json)
    }

    public func notification(method: String, params: JSON) -> [UInt8] {
        frame(.notification(method: method, params: params))
    }

    private mutating func reply(_ message: OutgoingMessage, slot: BatchCollector.Slot?) -> [Event] {
        guard let slot else { return [.send(frame(message))] }
        return batches.fill(slot, with: message.json).map { [.send(framing.frame(text: $0))] } ?? []
    }

    private func frame(_ message: OutgoingMessage) -> [UInt8] { frame(message.json) }

    private func frame(_ json: JSON) -> [UInt8] { framing.frame(json) }

    private var framing: Framing { decoder.framing ?? .lines }
}

extension IncomingMessage {
    fileprivate static let nestedBatch = IncomingMessage.invalid(id: .null, reason: "a batch holds no batches")

    fileprivate var expectsReply: Bool {
        switch self {
        case .request, .empty, .invalid: true
        case .notification, .result, .error, .brokenReply: false
        }
    }
}

internal import JSONText
internal import WatchwordProtocol

/// The peer's unanswered calls on one connection.
struct OpenCalls {
    struct Call {
        let id: RequestID
        /// The position of the reply in its batch; `nil` outside of batches.
        let slot: BatchCollector.Slot?
    }

    private var calls: [ConnectionMachine.CallID: Call] = [:]
    /// The calls by id, except those with the id `null`, which is not unique.
    private var byID: [RequestID: ConnectionMachine.CallID] = [:]
    private var last = 0

    var count: Int { calls.count }

    subscript(id: RequestID) -> ConnectionMachine.CallID? { byID[id] }

    func requestID(of call: ConnectionMachine.CallID) -> RequestID? { calls[call]?.id }

    mutating func open(_ id: RequestID, _ slot: BatchCollector.Slot?) -> ConnectionMachine.CallID {
        last += 1
        let call = ConnectionMachine.CallID(value: last)
        calls[call] = Call(id: id, slot: slot)
        if id != .null { byID[id] = call }
        return call
    }

    /// Removes and returns an answered call; `nil` if it was answered before.
    mutating func close(_ call: ConnectionMachine.CallID) -> Call? {
        guard let open = calls.removeValue(forKey: call) else { return nil }
        byID[open.id] = nil
        return open
    }
}

/// The requests to the peer on one connection that are neither answered nor cancelled.
struct OpenRequests {
    private var numbers: Set<Int> = []
    private var last = 0

    func contains(_ number: Int) -> Bool { numbers.contains(number) }

    mutating func open() -> Int {
        last += 1
        numbers.insert(last)
        return last
    }

    /// Returns `false` if the request is not open.
    mutating func settle(_ number: Int) -> Bool { numbers.remove(number) != nil }
}

/// Collects the replies to each batch until the batch is complete (JSON-RPC 2.0 section 6), in the order of the
/// requests.
struct BatchCollector {
    struct Slot: Equatable {
        let batch: Int
        let position: Int
    }

    private var replies: [Int: [[UInt8]?]] = [:]
    private var lastBatch = 0
    /// The size in bytes of the replies in incomplete batches.
    private(set) var chargedBytes = 0

    mutating func open(expecting count: Int) -> Int {
        lastBatch += 1
        replies[lastBatch] = Array(repeating: nil, count: count)
        return lastBatch
    }

    /// Returns the text of the whole batch if `reply` completes it; otherwise `nil`.
    mutating func fill(_ slot: Slot, with reply: some JSONWritable) -> [UInt8]? {
        let text = reply.serialized()
        replies[slot.batch]?[slot.position] = text
        chargedBytes += text.count
        guard let batch = replies[slot.batch], !batch.contains(where: { $0 == nil }) else { return nil }
        replies[slot.batch] = nil
        let texts = batch.compactMap { $0 }
        chargedBytes -= texts.reduce(0) { $0 + $1.count }
        return [UInt8(ascii: "[")] + texts.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
    }
}

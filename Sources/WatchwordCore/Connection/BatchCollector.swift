internal import JSONText

/// Holds back the replies to a batch until all are there (JSON-RPC 2.0 section 6). They go out in the order of the requests.
struct BatchCollector {
    struct Slot: Equatable {
        let batch: Int
        let position: Int
    }

    private var replies: [Int: [[UInt8]?]] = [:]
    private var lastBatch = 0
    /// Of replies that wait for others.
    private(set) var heldBytes = 0

    mutating func open(expecting count: Int) -> Int {
        lastBatch += 1
        replies[lastBatch] = Array(repeating: nil, count: count)
        return lastBatch
    }

    /// The text of the whole batch, when `reply` was the last one missing.
    mutating func fill(_ slot: Slot, with reply: JSON) -> [UInt8]? {
        let text = reply.serialized()
        replies[slot.batch]?[slot.position] = text
        heldBytes += text.count
        guard let batch = replies[slot.batch], !batch.contains(where: { $0 == nil }) else { return nil }
        replies[slot.batch] = nil
        let texts = batch.compactMap { $0 }
        heldBytes -= texts.reduce(0) { $0 + $1.count }
        return [UInt8(ascii: "[")] + texts.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
    }
}

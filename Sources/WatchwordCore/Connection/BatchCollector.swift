internal import JSONText

/// Holds back the replies to a batch until all are there (JSON-RPC 2.0 section 6). They go out in the order of the requests.
struct BatchCollector {
    struct Slot: Equatable {
        let batch: Int
        let position: Int
    }

    private var replies: [Int: [JSON?]] = [:]
    private var lastBatch = 0

    var isEmpty: Bool { replies.isEmpty }

    mutating func open(expecting count: Int) -> Int {
        lastBatch += 1
        replies[lastBatch] = Array(repeating: nil, count: count)
        return lastBatch
    }

    /// The whole batch, when `reply` was the last one missing.
    mutating func fill(_ slot: Slot, with reply: JSON) -> JSON? {
        replies[slot.batch]?[slot.position] = reply
        guard let batch = replies[slot.batch], !batch.contains(where: { $0 == nil }) else { return nil }
        replies[slot.batch] = nil
        return .array(batch.compactMap { $0 })
    }
}

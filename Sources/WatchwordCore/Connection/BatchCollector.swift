internal import JSONText

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

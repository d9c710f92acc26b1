internal import WatchwordProtocol

/// Response bodies above the inline limit that wait to be read in steps, for one connection.
struct HeldBodies {
    private struct Held {
        let bytes: [UInt8]
        var offset = 0
        var lastRead: Duration
    }

    private var bodies: [String: Held] = [:]
    private(set) var totalBytes = 0

    var fetchIDs: [String] { bodies.keys.sorted() }

    /// `false` when the connection holds too much already; nothing is kept then.
    mutating func hold(_ bytes: [UInt8], for fetchID: String, now: Duration) -> Bool {
        guard totalBytes + bytes.count <= Limits.heldBodyBytesPerConnection else { return false }
        bodies[fetchID] = Held(bytes: bytes, lastRead: now)
        totalBytes += bytes.count
        return true
    }

    /// The next part; the body is dropped once its end was read. `nil` when nothing is held under this name.
    mutating func read(_ params: FetchReadParams, now: Duration) -> FetchReadResult? {
        guard var held = bodies[params.fetchID] else { return nil }
        let end = min(held.offset + params.maxBytes, held.bytes.count)
        let result = FetchReadResult(
            data: Array(held.bytes[held.offset..<end]), offsetBytes: held.offset, isAtEnd: end == held.bytes.count)
        held.offset = end
        held.lastRead = now
        bodies[params.fetchID] = held
        if result.isAtEnd { drop(params.fetchID) }
        return result
    }

    /// `false` when nothing was held under this name.
    @discardableResult
    mutating func drop(_ fetchID: String) -> Bool {
        guard let held = bodies.removeValue(forKey: fetchID) else { return false }
        totalBytes -= held.bytes.count
        return true
    }

    /// When the body would be dropped if nobody reads on; `nil` when it is gone.
    func deadline(of fetchID: String) -> Duration? { bodies[fetchID].map { $0.lastRead + Limits.heldBodyIdle } }
}

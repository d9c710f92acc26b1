internal import WatchwordProtocol

/// The nonces of all servers, and how often each was used: requests that share one, in whichever fetch, never use a count
/// twice (RFC 7616 section 3.4). Bounded: the oldest nonce is dropped first.
struct DigestNonces: Sendable {
    private struct Key: Hashable {
        let origin: Origin
        let nonce: String
    }

    private struct Use {
        var count = 0
        /// With a `-sess` algorithm the first client nonce is part of the key of the whole session (RFC 7616 section 3.4.2).
        let sessionClientNonce: String
    }

    private static let capacity = 1024

    private var uses: [Key: Use] = [:]
    private var order: [Key] = []

    /// Whether counting can go on. A dropped nonce would start again at one, which a server takes for a replay.
    func remembers(_ challenge: DigestChallenge, at origin: Origin) -> Bool {
        uses[Key(origin: origin, nonce: challenge.nonce)] != nil
    }

    /// The answer for one more request. `clientNonce` is fresh for each.
    mutating func nextResponse(to challenge: DigestChallenge, at origin: Origin, clientNonce: String) -> DigestResponse
    {
        let key = Key(origin: origin, nonce: challenge.nonce)
        if uses[key] == nil { order.append(key) }
        var use = uses[key] ?? Use(sessionClientNonce: clientNonce)
        use.count += 1
        uses[key] = use
        if order.count > Self.capacity { uses[order.removeFirst()] = nil }
        return DigestResponse(
            challenge: challenge, nonceCount: use.count,
            clientNonce: challenge.algorithm.isSession ? use.sessionClientNonce : clientNonce)
    }
}

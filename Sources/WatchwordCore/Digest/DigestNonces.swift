internal import WatchwordProtocol

/// The nonces of all servers, and how often each was used: requests that share one, in whichever fetch, never use a count
/// twice (RFC 7616 section 3.4). Bounded: the oldest nonce is dropped first.
struct DigestNonces: Sendable {
    private struct Key: Hashable {
        let challenger: Challenger
        let nonce: ExactText
    }

    private struct Use {
        var count = 0
        /// With a `-sess` algorithm the first nonces of both sides are part of the key of the whole session (RFC 7616
        /// section 3.4.2), which a new nonce of the server's does not end (section 3.6).
        let sessionClientNonce: String
        var sessionNonce: ExactText?
    }

    private static let capacity = 1024

    /// Kept like the nonces: for every fetch, whatever it lets the broker keep.
    var accepted = AcceptedStrength()

    private var uses: [Key: Use] = [:]
    private var order: [Key] = []

    /// Whether counting can go on. A dropped nonce would start again at one, which a server takes for a replay.
    func remembers(_ challenge: DigestChallenge, at challenger: Challenger) -> Bool {
        uses[Key(challenger: challenger, nonce: challenge.nonce)] != nil
    }

    /// The answer for one more request. `clientNonce` is fresh for each.
    mutating func nextResponse(to challenge: DigestChallenge, at challenger: Challenger, clientNonce: String)
        -> DigestResponse
    {
        let key = Key(challenger: challenger, nonce: challenge.nonce)
        var use = uses[key] ?? Use(sessionClientNonce: clientNonce)
        use.count += 1
        note(use, for: key)
        let isSession = challenge.algorithm.isSession
        return DigestResponse(
            challenge: challenge, nonceCount: use.count,
            clientNonce: isSession ? use.sessionClientNonce : clientNonce, sessionNonce: use.sessionNonce)
    }

    /// The challenge for the next request after one whose answer carried `nextnonce` (RFC 7616 section 3.5). Counting starts
    /// at one, unless the server has announced the same nonce before.
    mutating func follow(_ response: DigestResponse, with nonce: ExactText, at challenger: Challenger)
        -> DigestChallenge
    {
        let next = response.challenge.followed(by: nonce)
        let key = Key(challenger: challenger, nonce: nonce)
        if uses[key] == nil {
            let sessionNonce = response.sessionNonce ?? response.challenge.nonce
            note(Use(sessionClientNonce: response.clientNonce, sessionNonce: sessionNonce), for: key)
        }
        return next
    }

    private mutating func note(_ use: Use, for key: Key) {
        guard uses.updateValue(use, forKey: key) == nil else { return }
        order.append(key)
        if let surplus = OriginShare.surplus(in: order, limit: Self.capacity, of: \.challenger) {
            uses[order.remove(at: surplus)] = nil
        }
    }
}

internal import WatchwordProtocol

/// The use counts of nonces. Requests with the same nonce, in any fetch, never use the same count (RFC 7616 section
/// 3.4). Bounded as described at `ChallengerTable`.
struct DigestNonces: Sendable {
    private struct Key: Hashable {
        let challenger: Challenger
        let nonce: ExactText
    }

    private struct Use {
        var count = 0
        /// The client nonce of the session of a `-sess` algorithm. The first nonces of both sides are part of the
        /// session key (RFC 7616 section 3.4.2); a new server nonce does not end the session (section 3.6).
        let sessionClientNonce: String
        var sessionNonce: ExactText?
    }

    private static let capacity = 1024

    /// The schemes that servers have accepted. Like the nonces, they are recorded for every fetch, even one without
    /// storage.
    var accepted = AcceptedStrength()

    private var uses: [Key: Use] = [:]
    private var order = ChallengerTable<[Key]>()

    /// Whether the count of the nonce is known. The count of a dropped nonce would start again at 1, which a server
    /// treats as a replay.
    func remembers(_ challenge: DigestChallenge, at challenger: Challenger) -> Bool {
        uses[Key(challenger: challenger, nonce: challenge.nonce)] != nil
    }

    /// Returns the response to `challenge` for the next request.
    /// - Parameter clientNonce: a new value for each call.
    mutating func nextResponse(to challenge: DigestChallenge, at challenger: Challenger, clientNonce: String)
        -> DigestResponse
    {
        let key = Key(challenger: challenger, nonce: challenge.nonce)
        var use = uses[key] ?? Use(sessionClientNonce: clientNonce)
        use.count += 1
        record(use, for: key)
        let isSession = challenge.algorithm.isSession
        return DigestResponse(
            challenge: challenge, nonceCount: use.count,
            clientNonce: isSession ? use.sessionClientNonce : clientNonce, sessionNonce: use.sessionNonce)
    }

    /// Returns the challenge for the request after a response with `nextnonce` (RFC 7616 section 3.5). The count starts
    /// at 1, unless the server has announced the same nonce before.
    mutating func follow(_ response: DigestResponse, with nonce: ExactText, at challenger: Challenger)
        -> DigestChallenge
    {
        let next = response.challenge.followed(by: nonce)
        let key = Key(challenger: challenger, nonce: nonce)
        if uses[key] == nil {
            let sessionNonce = response.sessionNonce ?? response.challenge.nonce
            record(Use(sessionClientNonce: response.clientNonce, sessionNonce: sessionNonce), for: key)
        }
        return next
    }

    private mutating func record(_ use: Use, for key: Key) {
        guard uses.updateValue(use, forKey: key) == nil else { return }
        if let dropped = order.append(key, at: key.challenger, limit: Self.capacity) { uses[dropped] = nil }
    }
}

/// The source of client nonces: at least 128 random bits as text, fresh for each response (RFC 7616 section 5.12).
public enum ClientNonces: Sendable {
    case random
    /// Always the same text, for tests.
    case fixed(String)

    func next() -> String {
        switch self {
        case .random: RandomText.make128Bits()
        case .fixed(let nonce): nonce
        }
    }
}

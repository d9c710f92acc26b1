internal import JSONText
internal import WatchwordProtocol

/// A proof that the sender of a request has the key of its token (RFC 9449 section 4.2).
enum TokenProof {
    static let field = "DPoP"
    static let nonceField = "DPoP-Nonce"

    /// - Parameters:
    ///   - token: the token that the request presents; `nil` at a token endpoint.
    ///   - nonce: the last nonce of the server.
    ///   - sinceEpoch: the wall-clock time.
    /// - Returns: the value of the field `DPoP`; `nil` if there is no memory for a signature.
    static func make(
        by key: ProofKey, method: String, _ url: FetchURL, token: Secret? = nil, nonce: String?, sinceEpoch: Duration
    ) -> String? {
        let (x, y) = key.coordinates
        let header: JSON = [
            "typ": "dpop+jwt", "alg": "ES256",
            "jwk": ["kty": "EC", "crv": "P-256", "x": .string(x), "y": .string(y)],
        ]
        let hash = token.map { $0.withUnsafeBytes { OAuthText.base64URL(OAuthText.sha256($0)) } }
        let claims: JSON = [
            "jti": .string(OAuthText.makeRandom()), "htm": .string(method),
            // Without the query (RFC 9449 section 4.2).
            "htu": .string(FetchURL(origin: url.origin, path: url.path, query: nil).text),
            "iat": .integer(Int(sinceEpoch.components.seconds)), "ath": hash.map { .string($0) },
            "nonce": nonce.map { .string($0) },
        ]
        let text = "\(OAuthText.base64URL(header.serialized())).\(OAuthText.base64URL(claims.serialized()))"
        return key.signature(of: Array(text.utf8)).map { "\(text).\(OAuthText.base64URL($0))" }
    }
}

/// The proofs of one search for a token: makes them, and makes them again if the server requires a nonce or has another time.
struct TokenProver: Sendable {
    let key: ProofKey
    private var nonce: String?
    /// How much the server's clock is ahead of this one.
    private var offset = Duration.zero
    private var sent: OAuthRequest?
    private var isNonceTried = false
    private var isTimeTried = false

    init(_ key: ProofKey) { self.key = key }

    /// Returns the request with a proof.
    mutating func prove(_ request: OAuthRequest, _ clock: TokenMachine.Clock) -> OAuthRequest {
        (sent, isNonceTried, isTimeTried) = (request, false, false)
        return proved(request, clock)
    }

    private func proved(_ request: OAuthRequest, _ clock: TokenMachine.Clock) -> OAuthRequest {
        var request = request
        let proof = TokenProof.make(
            by: key, method: "POST", request.url, nonce: nonce, sinceEpoch: clock.sinceEpoch + offset)
        if let proof { request.add(HeaderField(TokenProof.field, proof)) }
        return request
    }

    /// Returns the request to send again after `reply`, once for a nonce and once for another time; `nil` for none.
    mutating func again(after reply: OAuthReply, _ clock: TokenMachine.Clock) -> OAuthRequest? {
        nonce = reply.headers.firstValue(of: TokenProof.nonceField) ?? nonce
        guard let sent, reply.status >= 400, let code = OAuthDocument.parse(reply.body)?["error"]?.string else {
            return nil
        }
        switch code {
        case "use_dpop_nonce" where !isNonceTried && nonce != nil:
            isNonceTried = true
        case "invalid_dpop_proof" where !isTimeTried:
            guard let time = reply.headers.firstValue(of: "Date").flatMap(HTTPDate.seconds) else { return nil }
            (isTimeTried, offset) = (true, .seconds(time) - clock.sinceEpoch)
        default: return nil
        }
        return proved(sent, clock)
    }
}

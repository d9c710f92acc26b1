internal import COpenSSL
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

/// The key of a token (RFC 9449), with ECDSA on P-256 and SHA-256 (ES256, RFC 7518 section 3.4).
extension ProofKey {
    private static let coordinateBytes = 32

    /// Returns a new key; `nil` if there is no memory.
    static func make() -> ProofKey? {
        guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { return nil }
        defer { EVP_PKEY_free(key) }
        return ProofKey(key)
    }

    private init?(_ key: OpaquePointer) {
        let count = i2d_PrivateKey(key, nil)
        guard count > 0, let point = Self.point(of: key) else { return nil }
        let der = Secret(capacity: Int(count)) { block in
            var end = block.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return max(0, Int(i2d_PrivateKey(key, &end)))
        }
        self.init(privateKey: der, publicKey: point)
    }

    /// Returns the key in DER; `nil` if it is not a key on this curve.
    init?(_ der: Secret) {
        guard let key = Self.key(der) else { return nil }
        defer { EVP_PKEY_free(key) }
        guard let point = Self.point(of: key) else { return nil }
        self.init(privateKey: der, publicKey: point)
    }

    private static func key(_ der: Secret) -> OpaquePointer? {
        der.withUnsafeBytes { bytes in
            var start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return d2i_PrivateKey(EVP_PKEY_EC, nil, &start, bytes.count)
        }
    }

    /// The coordinates of the public point, without the byte that says that they are not compressed.
    private static func point(of key: OpaquePointer) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 2 * coordinateBytes + 1)
        var count = 0
        guard EVP_PKEY_get_octet_string_param(key, "pub", &bytes, bytes.count, &count) == 1,
            count == bytes.count, bytes[0] == 4
        else { return nil }
        return Array(bytes.dropFirst())
    }

    /// Returns the signature of `text`: both numbers, 32 bytes each.
    func signature(of text: [UInt8]) -> [UInt8]? {
        guard let key = Self.key(privateKey), let context = EVP_MD_CTX_new() else { return nil }
        defer {
            EVP_MD_CTX_free(context)
            EVP_PKEY_free(key)
        }
        var der = [UInt8](repeating: 0, count: 128)
        var count = der.count
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, &der, &count, text, text.count) == 1
        else { return nil }
        return Self.numbers(inSignature: der, count)
    }

    private static func numbers(inSignature der: [UInt8], _ count: Int) -> [UInt8]? {
        der.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            guard let parsed = d2i_ECDSA_SIG(nil, &start, count) else { return nil }
            defer { ECDSA_SIG_free(parsed) }
            var numbers = [UInt8](repeating: 0, count: 2 * coordinateBytes)
            let isWhole = numbers.withUnsafeMutableBufferPointer { buffer in
                let (r, s) = (ECDSA_SIG_get0_r(parsed), ECDSA_SIG_get0_s(parsed))
                let size = Int32(coordinateBytes)
                return BN_bn2binpad(r, buffer.baseAddress, size) == size
                    && BN_bn2binpad(s, buffer.baseAddress?.advanced(by: coordinateBytes), size) == size
            }
            return isWhole ? numbers : nil
        }
    }

    /// The coordinates in base64url.
    var coordinates: (x: String, y: String) {
        (
            OAuthText.base64URL(Array(publicKey.prefix(Self.coordinateBytes))),
            OAuthText.base64URL(Array(publicKey.dropFirst(Self.coordinateBytes)))
        )
    }
}

/// The last nonces of servers for the proofs of bound tokens (RFC 9449 section 9).
struct ProofNonces: Sendable {
    private static let limit = 256

    private var nonces: [Origin: String] = [:]

    subscript(origin: Origin) -> String? { nonces[origin] }

    mutating func record(_ nonce: String?, of origin: Origin) {
        guard let nonce, nonce.utf8.count <= 1024 else { return }
        if nonces.count >= Self.limit, nonces[origin] == nil { nonces = [:] }
        nonces[origin] = nonce
    }
}

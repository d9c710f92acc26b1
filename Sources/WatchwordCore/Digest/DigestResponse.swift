internal import WatchwordProtocol

/// The parts of a request that its Digest response covers.
struct DigestRequest {
    let method: String
    /// The target in the request line that the challenger receives, byte for byte (RFC 7616 section 3.4.6).
    let target: String
    var body: [UInt8] = []
}

/// Computes the response to a Digest challenge (RFC 7616 section 3.4), and the proof that the server must send for it.
struct DigestResponse: Sendable, Equatable {
    let challenge: DigestChallenge
    let nonceCount: Int
    let clientNonce: String
    /// The first nonce of the session of a `-sess` algorithm; `nil` if it is that of the challenge.
    var sessionNonce: ExactText?

    /// The value of the `Authorization` field.
    func authorization(for credential: LoginCredential, _ request: DigestRequest) -> Secret {
        var fields = ["realm=\(challenge.realm.string.quoted)", "nonce=\(challenge.nonce.string.quoted)"]
        fields.append("uri=\(request.target.quoted)")
        // Some servers compare the spelling with their own (RFC 7616 section 3.4).
        if let name = challenge.algorithmName { fields.append("algorithm=\(name)") }
        if challenge.protection != .legacy {
            fields += ["qop=\(challenge.protection.rawValue)", "nc=\(count)", "cnonce=\(clientNonce.quoted)"]
        }
        if let opaque = challenge.opaque { fields.append("opaque=\(opaque.quoted)") }
        if challenge.hashesUser { fields.append("userhash=true") }
        let rest = SecretPart.header(", \(fields.joined(separator: ", ")), response=\"")
        return Secret(
            joining: [.text("Digest ")] + userName(of: credential)
                + [rest, .secret(response(for: credential, request)), .text("\"")])
    }

    /// Returns the `response` value in hexadecimal (RFC 7616 sections 3.4.1 and 3.4.3).
    func response(for credential: LoginCredential, _ request: DigestRequest) -> Secret {
        digest(
            for: credential, protection: challenge.protection,
            covering: [.text("\(request.method):\(request.target)")],
            bodyHash: challenge.algorithm.hexDigest(of: [.bytes(request.body)]))
    }

    /// Returns `rspauth`, with which a server proves that it knows the password (RFC 7616 section 3.5).
    /// - Parameter protection: the `qop` that the server names.
    func proof(
        for credential: LoginCredential, target: String, protection: DigestChallenge.Protection, bodyHash: Secret
    ) -> Secret {
        digest(for: credential, protection: protection, covering: [.text(":\(target)")], bodyHash: bodyHash)
    }

    /// `H(H(A1):nonce:nc:cnonce:qop:H(A2))`, or `H(H(A1):nonce:H(A2))` as in RFC 2069.
    private func digest(
        for credential: LoginCredential, protection: DigestChallenge.Protection, covering request: [SecretPart],
        bodyHash: Secret
    ) -> Secret {
        let algorithm = challenge.algorithm
        var request = request
        if protection == .authInt { request += [.text(":"), .secret(bodyHash)] }
        let middle =
            protection == .legacy
            ? ":\(challenge.nonce):" : ":\(challenge.nonce):\(count):\(clientNonce):\(protection.rawValue):"
        return algorithm.hexDigest(of: [
            .secret(keyHash(for: credential)), .header(middle), .secret(algorithm.hexDigest(of: request)),
        ])
    }

    /// Returns `H(A1)` (RFC 7616 section 3.4.2). With a `-sess` algorithm it depends only on the first nonces of the
    /// session.
    private func keyHash(for credential: LoginCredential) -> Secret {
        let algorithm = challenge.algorithm
        let (user, password) = bytes(of: credential)
        let plain = algorithm.hexDigest(of: [
            .bytes(user), .header(":\(challenge.realm):"), .secret(password),
        ])
        guard algorithm.isSession else { return plain }
        return algorithm.hexDigest(of: [.secret(plain), .header(":\(sessionNonce ?? challenge.nonce):\(clientNonce)")])
    }

    /// Encodes the credential; callers check first that the charset can represent it.
    private func bytes(of credential: LoginCredential) -> (user: [UInt8], password: Secret) {
        challenge.charset.bytes(of: credential) ?? (Array(credential.user.utf8), credential.secret)
    }

    /// Returns `username` or `username*`, never both (RFC 7616 section 3.4). Only servers that send a charset are
    /// expected to support `username*`; others get a quoted string in the encoding of `DigestCharset`.
    private func userName(of credential: LoginCredential) -> [SecretPart] {
        let bytes = bytes(of: credential).user
        if challenge.hashesUser {
            let hash = challenge.algorithm.hexDigest(of: [.bytes(bytes), .header(":\(challenge.realm)")])
            return [.text("username=\""), .secret(hash), .text("\"")]
        }
        let isPlain = bytes.allSatisfy { (0x20...0x7E).contains($0) }
        if !isPlain && challenge.charset == .utf8 {
            return [.text("username*=\(credential.user.string.asExtendedValue)")]
        }
        return [.text("username="), .bytes(bytes.quoted)]
    }

    /// Eight lower-case hexadecimal digits.
    private var count: String {
        let digits = String(nonceCount, radix: 16)
        return String(repeating: "0", count: max(0, 8 - digits.count)) + digits
    }
}

extension Sequence where Element == UInt8 {
    /// The form of a quoted string (RFC 9110 section 5.6.4).
    fileprivate var quoted: [UInt8] {
        let mark = UInt8(ascii: "\"")
        let escape = UInt8(ascii: "\\")
        return [mark] + flatMap { $0 == mark || $0 == escape ? [escape, $0] : [$0] } + [mark]
    }
}

extension String {
    fileprivate var quoted: String { String(decoding: utf8.quoted, as: UTF8.self) }
}

internal import WatchwordProtocol

/// What of a request goes into its response.
struct DigestRequest {
    let method: String
    /// As in the request line that the challenger sees, byte for byte (RFC 7616 section 3.4.6).
    let target: String
    var body: [UInt8] = []
}

/// Computes one answer to a Digest challenge (RFC 7616 section 3.4), and the proof that the server may give for it.
struct DigestResponse: Sendable, Equatable {
    let challenge: DigestChallenge
    let nonceCount: Int
    let clientNonce: String
    /// The nonce that the session of a `-sess` algorithm began with; `nil` when it is the challenge's.
    var sessionNonce: ExactText?

    /// The value of the `Authorization` field.
    func authorization(for credential: LoginCredential, _ request: DigestRequest) -> Secret {
        var fields = ["realm=\(challenge.realm.string.quoted)", "nonce=\(challenge.nonce.string.quoted)"]
        fields.append("uri=\(request.target.quoted)")
        if challenge.namesAlgorithm { fields.append("algorithm=\(challenge.algorithm.name)") }
        if challenge.protection != .legacy {
            fields += ["qop=\(challenge.protection.rawValue)", "nc=\(count)", "cnonce=\(clientNonce.quoted)"]
        }
        if let opaque = challenge.opaque { fields.append("opaque=\(opaque.quoted)") }
        if challenge.hashesUser { fields.append("userhash=true") }
        let rest = Part.text(", \(fields.joined(separator: ", ")), response=\"")
        return Secret(
            joining: [.text("Digest ")] + userName(of: credential)
                + [rest, .secret(response(for: credential, request)), .text("\"")])
    }

    /// Sections 3.4.1 and 3.4.3, in hexadecimal.
    func response(for credential: LoginCredential, _ request: DigestRequest) -> Secret {
        digest(
            for: credential, protection: challenge.protection,
            covering: [.text("\(request.method):\(request.target)")],
            bodyHash: challenge.algorithm.hexDigest(of: [.bytes(request.body)]))
    }

    /// `rspauth`, with which a server shows that it knows the password too (section 3.5). `protection` is what the server
    /// says that it covers.
    func proof(
        for credential: LoginCredential, target: String, protection: DigestChallenge.Protection, bodyHash: Secret
    ) -> Secret {
        digest(for: credential, protection: protection, covering: [.text(":\(target)")], bodyHash: bodyHash)
    }

    /// `H(H(A1):nonce:nc:cnonce:qop:H(A2))`, or `H(H(A1):nonce:H(A2))` as in RFC 2069.
    private func digest(
        for credential: LoginCredential, protection: DigestChallenge.Protection, covering request: [Part],
        bodyHash: Secret
    ) -> Secret {
        let algorithm = challenge.algorithm
        var request = request
        if protection == .authInt { request += [.text(":"), .secret(bodyHash)] }
        let middle =
            protection == .legacy
            ? ":\(challenge.nonce):" : ":\(challenge.nonce):\(count):\(clientNonce):\(protection.rawValue):"
        return algorithm.hexDigest(of: [
            .secret(keyHash(for: credential)), .text(middle), .secret(algorithm.hexDigest(of: request)),
        ])
    }

    /// `H(A1)` (section 3.4.2). That of a session is made once, of the nonces that it began with.
    private func keyHash(for credential: LoginCredential) -> Secret {
        let algorithm = challenge.algorithm
        let (user, password) = bytes(of: credential)
        let plain = algorithm.hexDigest(of: [
            .bytes(user), .text(":\(challenge.realm):"), .secret(password),
        ])
        guard algorithm.isSession else { return plain }
        return algorithm.hexDigest(of: [.secret(plain), .text(":\(sessionNonce ?? challenge.nonce):\(clientNonce)")])
    }

    /// Only a credential that the charset can carry comes here.
    private func bytes(of credential: LoginCredential) -> (user: [UInt8], password: Secret) {
        challenge.charset.bytes(of: credential) ?? (Array(credential.user.utf8), credential.secret)
    }

    /// `username` or `username*`, never both (section 3.4). Only a server that speaks of a charset knows the second one;
    /// others get the bytes that they expect in the quoted string.
    private func userName(of credential: LoginCredential) -> [Part] {
        let bytes = bytes(of: credential).user
        if challenge.hashesUser {
            let hash = challenge.algorithm.hexDigest(of: [.bytes(bytes), .text(":\(challenge.realm)")])
            return [.text("username=\""), .secret(hash), .text("\"")]
        }
        let isPlain = bytes.allSatisfy { (0x20...0x7E).contains($0) }
        if !isPlain && challenge.charset == .utf8 {
            return [.text("username*=\(credential.user.string.asExtendedValue)")]
        }
        return [.text("username="), .bytes(bytes.quoted)]
    }

    /// Eight small hexadecimal digits.
    private var count: String {
        let digits = String(nonceCount, radix: 16)
        return String(repeating: "0", count: max(0, 8 - digits.count)) + digits
    }
}

extension Sequence where Element == UInt8 {
    /// As a quoted string (RFC 9110 section 5.6.4).
    fileprivate var quoted: [UInt8] {
        let mark = UInt8(ascii: "\"")
        let escape = UInt8(ascii: "\\")
        return [mark] + flatMap { $0 == mark || $0 == escape ? [escape, $0] : [$0] } + [mark]
    }
}

extension String {
    fileprivate var quoted: String { String(decoding: utf8.quoted, as: UTF8.self) }
}

internal import WatchwordProtocol

/// Computes one answer to a Digest challenge with `qop=auth` (RFC 7616 section 3.4).
struct DigestResponse {
    let challenge: DigestChallenge
    let nonceCount: Int
    let clientNonce: String

    func authorization(for credential: PasswordCredential, method: String, requestTarget: String) -> Secret {
        var fields = [
            "username=\(quoted(credential.user))", "realm=\(quoted(challenge.realm))",
            "nonce=\(quoted(challenge.nonce))", "uri=\(quoted(requestTarget))",
        ]
        if challenge.namesAlgorithm { fields.append("algorithm=\(challenge.algorithm.name)") }
        fields += ["qop=auth", "nc=\(count)", "cnonce=\(quoted(clientNonce))"]
        if let opaque = challenge.opaque { fields.append("opaque=\(quoted(opaque))") }
        return Secret(joining: [
            .text("Digest \(fields.joined(separator: ", ")), response=\""),
            .secret(response(for: credential, method: method, requestTarget: requestTarget)),
            .text("\""),
        ])
    }

    /// Section 3.4.1: `H(H(A1):nonce:nc:cnonce:qop:H(A2))`, in hexadecimal.
    func response(for credential: PasswordCredential, method: String, requestTarget: String) -> Secret {
        let algorithm = challenge.algorithm
        let requestHash = algorithm.hexDigest(of: [.text("\(method):\(requestTarget)")])
        return algorithm.hexDigest(of: [
            .secret(keyHash(for: credential)), .text(":\(challenge.nonce):\(count):\(clientNonce):auth:"),
            .secret(requestHash),
        ])
    }

    /// `H(A1)` (sections 3.4.2 and 3.4.3).
    private func keyHash(for credential: PasswordCredential) -> Secret {
        let algorithm = challenge.algorithm
        let plain = algorithm.hexDigest(of: [
            .text("\(credential.user):\(challenge.realm):"), .secret(credential.password),
        ])
        guard algorithm.isSession else { return plain }
        return algorithm.hexDigest(of: [.secret(plain), .text(":\(challenge.nonce):\(clientNonce)")])
    }

    /// Eight small hexadecimal digits.
    private var count: String {
        let digits = String(nonceCount, radix: 16)
        return String(repeating: "0", count: max(0, 8 - digits.count)) + digits
    }

    private func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { result += "\\" }
            result.unicodeScalars.append(scalar)
        }
        return result + "\""
    }
}

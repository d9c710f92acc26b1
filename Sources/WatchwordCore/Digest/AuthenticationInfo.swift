internal import WatchwordProtocol

/// The `Authentication-Info` of a response (RFC 9110 section 11.6.3, RFC 7616 section 3.5). Unknown parameters are
/// ignored.
struct AuthenticationInfo: Sendable, Equatable {
    /// The server's proofs that it knows the password (`rspauth`). There should be only one; if there are more, each
    /// must be correct.
    let proofs: [String]
    /// The `qop` of the proof; `nil` if it is the same as in the request.
    let qop: String?
    /// The nonce for the next request.
    let nextNonce: String?

    /// Parses the fields; a malformed field is ignored as a whole.
    init(fields: [String]) {
        var parameters: [SchemeChallenge.Parameter] = []
        var bytes = 0
        for field in fields {
            bytes += field.headerByteCount
            guard bytes <= Limits.challengeHeaderBytes else { break }
            var parser = ChallengeFieldParser(field)
            parameters += parser.parseParameterList() ?? []
        }
        func values(_ name: String) -> [String] { parameters.filter { $0.name == name }.map(\.value) }
        proofs = values("rspauth")
        qop = values("qop").first
        let announced = values("nextnonce")
        nextNonce = announced.count == 1 ? announced.first.flatMap { $0.isEmpty ? nil : $0 } : nil
    }
}

/// The last Digest response sent, for checking the server's `Authentication-Info`.
struct DigestExchange: Sendable, Equatable {
    let response: DigestResponse
    let requestTarget: String

    /// Whether every proof in `info` is correct. Also `true` if there is none: servers need not send one.
    /// - Parameter body: the body of the response; `nil` if `ProofCheck` hashes it.
    func isProven(by info: AuthenticationInfo, for credential: LoginCredential, body: [UInt8]?) -> Bool {
        let algorithm = response.challenge.algorithm
        return isProven(by: info, for: credential, bodyHash: body.map { algorithm.hexDigest(of: [.bytes($0)]) })
    }

    /// Checks the proofs with the hash of the body only.
    func isProven(by info: AuthenticationInfo, for credential: LoginCredential, bodyHash: Secret?) -> Bool {
        guard !info.proofs.isEmpty else { return true }
        let protection = info.qop.map { DigestChallenge.Protection(option: $0) } ?? response.challenge.protection
        guard let protection else { return false }
        // A proof over a body that is not here is left to `ProofCheck`.
        guard protection != .authInt || bodyHash != nil else { return true }
        let right = response.proof(
            for: credential, target: requestTarget, protection: protection,
            bodyHash: bodyHash ?? Secret(capacity: 0) { _ in 0 })
        // guard: rspauth
        return info.proofs.allSatisfy { Secret(joining: [.text($0.asciiLowercased)]) == right }
    }
}

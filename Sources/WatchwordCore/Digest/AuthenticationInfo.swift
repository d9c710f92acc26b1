internal import WatchwordProtocol

/// The `Authentication-Info` of a response (RFC 7615 section 3, RFC 7616 section 3.5). It may be absent, and unknown
/// parameters count for nothing.
struct AuthenticationInfo: Sendable, Equatable {
    /// The server's proofs that it knows the password. More than one is an error, and then each has to be right.
    let proofs: [String]
    /// What the proof covers; `nil` for what the request's response did.
    let qop: String?
    /// The nonce for the next request.
    let nextNonce: String?

    /// A field that is not made as RFC 7615 says is left out whole.
    init(fields: [String]) {
        var parameters: [SchemeChallenge.Parameter] = []
        var bytes = 0
        for field in fields {
            bytes += field.utf8.count
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

/// What was sent last, for what the server says about it.
struct DigestExchange: Sendable, Equatable {
    let response: DigestResponse
    let requestTarget: String

    /// Whether every proof in `info` is right. None at all is right: servers need not give one.
    /// - Parameter body: `nil` for one that nobody has yet.
    func isProven(by info: AuthenticationInfo, for credential: LoginCredential, body: [UInt8]?) -> Bool {
        let algorithm = response.challenge.algorithm
        return isProven(by: info, for: credential, bodyHash: body.map { algorithm.hexDigest(of: [.bytes($0)]) })
    }

    /// The same for a body of which only the hash is there.
    func isProven(by info: AuthenticationInfo, for credential: LoginCredential, bodyHash: Secret?) -> Bool {
        guard !info.proofs.isEmpty else { return true }
        let protection = info.qop.map { DigestChallenge.Protection(option: $0) } ?? response.challenge.protection
        guard let protection else { return false }
        // It covers a body that is still on its way, or that was decoded: as good as no proof.
        guard protection != .authInt || bodyHash != nil else { return true }
        let right = response.proof(
            for: credential, target: requestTarget, protection: protection,
            bodyHash: bodyHash ?? Secret(capacity: 0) { _ in 0 })
        return info.proofs.allSatisfy { Secret(joining: [.text($0.asciiLowercased)]) == right }
    }
}

internal import Synchronization
public import WatchwordProtocol

/// The data for checking the proof of a server or proxy (RFC 7616 section 3.5) at the end of a response whose body is
/// streamed.
public struct ResponseProof: Sendable, Equatable {
    /// The result of the check: written at the end of the response, read when the body has ended. An object, because the
    /// port has returned the response by then.
    final class Finding: Sendable {
        private let state = Mutex<(isWrong: Bool, nextNonce: String?)>((false, nil))

        var isWrong: Bool { state.withLock { $0.isWrong } }
        var nextNonce: String? { state.withLock { $0.nextNonce } }

        func record(isRight: Bool, _ info: AuthenticationInfo) {
            state.withLock { $0 = (!isRight, isRight ? info.nextNonce : nil) }
        }
    }

    let attempt: Attempt
    let exchange: DigestExchange
    let finding = Finding()

    /// Returns `nil` if the request has no Digest response.
    init?(_ attempt: Attempt?) {
        guard let exchange = attempt?.digestExchange, let attempt else { return nil }
        (self.attempt, self.exchange) = (attempt, exchange)
    }

    var fieldName: String { attempt.space.proxyType == nil ? "Authentication-Info" : "Proxy-Authentication-Info" }

    /// Whether the proof in the response may be one over its body, which has to be complete for the check.
    /// - Parameter fields: the header section of the response.
    public func coversBody(_ fields: HeaderBlock) -> Bool {
        let info = AuthenticationInfo(fields: fields.values(of: fieldName))
        let protection =
            info.qop.map { DigestChallenge.Protection(option: $0) } ?? exchange.response.challenge.protection
        return protection == .authInt
    }

    /// Starts a check for one response.
    public func makeCheck() -> ProofCheck { ProofCheck(self) }

    public static func == (left: ResponseProof, right: ResponseProof) -> Bool {
        left.attempt == right.attempt && left.exchange == right.exchange
    }
}

/// Hashes a body while it is received, and checks the proof at its end.
public final class ProofCheck {
    private let proof: ResponseProof
    private let digest: RunningDigest

    init(_ proof: ResponseProof) {
        self.proof = proof
        digest = RunningDigest(proof.exchange.response.challenge.algorithm)
    }

    /// - Parameter bytes: a part of the body, with its content coding.
    public func update(_ bytes: UnsafeRawBufferPointer) { digest.update(bytes) }

    /// Whether every proof of the response is correct, or there is none. Called once, at the end of the response.
    public func isRight(_ headers: HeaderBlock, trailers: HeaderBlock = []) -> Bool {
        let values = headers.values(of: proof.fieldName) + trailers.values(of: proof.fieldName)
        let info = AuthenticationInfo(fields: values)
        let hash = digest.finish()
        let isRight = proof.exchange.isProven(
            by: info, for: proof.attempt.credential, bodyHash: hash)
        proof.finding.record(isRight: isRight, info)
        return isRight
    }
}

extension FetchTable {
    /// Called when the body of a response has ended after its fetch. A wrong proof removes the login from the session
    /// cache; a nonce announced after the body is used for the next request.
    public mutating func recordEnd(of proofs: [ResponseProof]) -> [Order] {
        for proof in proofs {
            let attempt = proof.attempt
            if proof.finding.isWrong {  // guard: rspauth-takes-back
                let isForgotten = context.session.forget(
                    attempt.credential, for: attempt.space, owner: attempt.partition, at: attempt.challenger)
                if isForgotten { context.add(.announce(CredentialChange(.forgotten, attempt, in: .session))) }
            } else if let nonce = proof.finding.nextNonce {
                context.session.follow(proof.exchange.response, with: ExactText(nonce), attempt)
            }
        }
        return takeOrders()
    }
}

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

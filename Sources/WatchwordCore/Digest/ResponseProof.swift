internal import Synchronization
public import WatchwordProtocol

/// What the proof of a server, or of a proxy, has to be for one request (RFC 7616 section 3.5): for whoever sees the end of a
/// response whose body is taken on its way.
public struct ResponseProof: Sendable, Equatable {
    /// What the end of a response has shown: written by whoever sees it, read when the body has ended.
    final class Finding: Sendable {
        private let state = Mutex<(isWrong: Bool, nextNonce: String?)>((false, nil))

        var isWrong: Bool { state.withLock { $0.isWrong } }
        var nextNonce: String? { state.withLock { $0.nextNonce } }

        func note(isRight: Bool, _ info: AuthenticationInfo) {
            state.withLock { $0 = (!isRight, isRight ? info.nextNonce : nil) }
        }
    }

    let attempt: Attempt
    let exchange: DigestExchange
    let finding = Finding()

    /// `nil` for a request that says nothing in Digest.
    init?(_ attempt: Attempt?) {
        guard let attempt, let exchange = attempt.digestExchange else { return nil }
        (self.attempt, self.exchange) = (attempt, exchange)
    }

    var fieldName: String { attempt.space.proxyType == nil ? "Authentication-Info" : "Proxy-Authentication-Info" }

    /// Begins to compare it with one response.
    public func makeCheck() -> ProofCheck { ProofCheck(self) }

    public static func == (left: ResponseProof, right: ResponseProof) -> Bool {
        left.attempt == right.attempt && left.exchange == right.exchange
    }
}

/// Hashes a body on its way, and says at its end whether the proof is right.
public final class ProofCheck {
    private let proof: ResponseProof
    private let digest: RunningDigest

    init(_ proof: ResponseProof) {
        self.proof = proof
        digest = RunningDigest(proof.exchange.response.challenge.algorithm)
    }

    public func update(_ bytes: UnsafeRawBufferPointer) { digest.update(bytes) }

    /// Whether every proof of the response is right; once, at its end. None at all is right.
    /// - Parameters:
    ///   - fields: of the header section and of the trailer section.
    ///   - isDecoded: the bytes are not those that the server has hashed.
    public func isRight(_ fields: [HeaderField], isDecoded: Bool) -> Bool {
        let info = AuthenticationInfo(fields: fields.values(of: proof.fieldName))
        let hash = digest.finish()
        let isRight = proof.exchange.isProven(
            by: info, for: proof.attempt.credential, bodyHash: isDecoded ? nil : hash)
        proof.finding.note(isRight: isRight, info)
        return isRight
    }
}

extension FetchTable {
    /// The body of a response has ended, whose fetch is over: a wrong proof takes back what was remembered of the login, and a
    /// nonce that was announced after the body is used next.
    public mutating func noteEnd(of proofs: [ResponseProof]) -> [Order] {
        for proof in proofs {
            let attempt = proof.attempt
            if proof.finding.isWrong {
                let isForgotten = context.session.forget(
                    attempt.credential, for: attempt.space, owner: attempt.home, at: attempt.challenger)
                if isForgotten { context.add(.announce(CredentialChange(.forgotten, attempt, in: .session))) }
            } else if let nonce = proof.finding.nextNonce {
                context.session.follow(proof.exchange.response, with: ExactText(nonce), attempt)
            }
        }
        return takeOrders()
    }
}

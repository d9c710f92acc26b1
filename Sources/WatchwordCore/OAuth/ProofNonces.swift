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

internal import WatchwordProtocol

/// The logins that the next request of a fetch carries.
struct Outgoing: Sendable, Equatable {
    /// To the server.
    var server: Attempt?
    /// To the proxy.
    var proxy: Attempt?
    /// Of the last request.
    var proofs: [ResponseProof] = []

    subscript(side: Side) -> Attempt? {
        get { side == .server ? server : proxy }
        set {
            switch side {
            case .server: server = newValue
            case .proxy: proxy = newValue
            }
        }
    }

    /// What the responses to the request that goes out now will have to prove.
    mutating func noteProofs(isTunnel: Bool) {
        proofs = [server, isTunnel ? nil : proxy].compactMap { $0.flatMap(ResponseProof.init) }
    }

    /// The attempt whose login belongs to the connection.
    var handshake: (attempt: Attempt, side: Side)? {
        if let server, server.challenge.isHandshake { return (server, .server) }
        if let proxy, proxy.challenge.isHandshake { return (proxy, .proxy) }
        return nil
    }
}

/// The two that may ask in one fetch.
enum Side: Sendable, Hashable, CaseIterable {
    /// First on the way (semantics rule 2).
    case proxy
    case server
}

/// That a certificate is good enough, as somebody has said.
struct TrustDecision: Sendable, Hashable {
    /// Of the leaf.
    var spkiSha256: [UInt8]
    /// Something is wrong with the certificate: nothing that is stored goes to this server (semantics rule 24).
    var isException: Bool
    var persistence: Persistence
    /// The only fetch that it holds for; `nil` for one that is remembered.
    var fetch: FetchID?
}

/// What a server gets that asks for a client certificate.
enum CertificateDecision: Sendable, Equatable {
    /// Nobody knows yet: a handshake in which the server asks fails, so that somebody can be asked.
    case undecided
    case none
    indirect case certificate(CertificateCredential, CredentialSource)

    var credential: CertificateCredential? {
        if case .certificate(let credential, _) = self { credential } else { nil }
    }

    /// Somebody has decided so for this fetch.
    var isOfFetch: Bool {
        switch self {
        case .undecided, .certificate(_, .session): false
        case .none, .certificate: true
        }
    }
}

internal import WatchwordProtocol

/// The logins that the next request of a fetch contains.
struct RequestLogins: Sendable, Equatable {
    var server: Attempt?
    var proxy: Attempt?
    /// The checks of the proofs (`rspauth`) that the response to the last request may contain.
    var proofs: [ResponseProof] = []

    /// Read and changed in place, because copying an attempt is expensive. Inlined, reading it allocates nothing.
    subscript(side: Side) -> Attempt? {
        @inline(__always) _read {
            switch side {
            case .server: yield server
            case .proxy: yield proxy
            }
        }
        _modify {
            switch side {
            case .server: yield &server
            case .proxy: yield &proxy
            }
        }
    }

    /// Sets `proofs` for the next request.
    mutating func recordProofs(isTunnel: Bool) {
        proofs = []
        for side in [Side.server, .proxy] where side == .server || !isTunnel {
            guard case .some = self[side]?.digestExchange, let proof = ResponseProof(self[side]) else { continue }
            proofs.append(proof)
        }
    }

    /// The attempt with a connection-level login (NTLM, Negotiate), if there is one.
    var handshake: (attempt: Attempt, side: Side)? {
        if server?.challenge.isHandshake == true, let server { return (server, .server) }
        if proxy?.challenge.isHandshake == true, let proxy { return (proxy, .proxy) }
        return nil
    }
}

/// The two peers that can challenge a fetch. The proxy comes first (SEMANTICS rule 2).
enum Side: Sendable, Hashable, CaseIterable {
    case proxy
    case server
}

/// The decision to accept a server certificate.
struct TrustDecision: Sendable, Hashable {
    /// The SHA-256 hash of the leaf certificate's public key.
    var spkiSha256: [UInt8]
    /// Whether the certificate does not verify, or was not verified. If so, no stored credential is sent to this server
    /// (SEMANTICS rule 24).
    var isException: Bool
    var persistence: Persistence
    /// The only fetch that the decision applies to; `nil` for a remembered one.
    var fetch: FetchID?
}

/// The reply to a server that requests a client certificate.
enum CertificateDecision: Sendable, Equatable {
    /// No decision yet. If the server requests a certificate, the handshake may be aborted to ask a respondent; see
    /// `ClientCertificateResolution.refusesRequest`.
    case undecided
    /// Continue without a certificate.
    case none
    indirect case certificate(CertificateCredential, CredentialSource)

    var credential: CertificateCredential? {
        if case .certificate(let credential, _) = self { credential } else { nil }
    }

    /// Whether the decision was made for this fetch alone.
    var appliesToFetchOnly: Bool {
        switch self {
        case .undecided, .certificate(_, .session): false
        case .none, .certificate: true
        }
    }
}

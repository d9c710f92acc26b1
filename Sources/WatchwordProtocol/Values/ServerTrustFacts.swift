public import JSONText

/// What a server has shown of itself, and what is wrong with it.
public struct ServerTrustFacts: Sendable, Equatable {
    public enum Problem: String, Sendable, CaseIterable {
        /// The leaf is its own issuer.
        case selfSigned
        /// No chain to an issuer that is trusted, or a chain that may not be used for a server.
        case untrustedIssuer
        case expired, notYetValid
        /// None of the alternative names is the host's (RFC 9525; the subject does not count).
        case hostMismatch
        /// Only as far as revocation lists are at hand.
        case revoked
        /// A key or a signature below OpenSSL's security level.
        case weakKey
        /// Not the key that somebody has accepted here before.
        case changed
    }

    /// The leaf first, then as far as issuers were found.
    public var chain: [CertificateFacts]
    public var problems: Set<Problem>

    public init(chain: [CertificateFacts], problems: Set<Problem>) {
        self.chain = chain
        self.problems = problems
    }
}

/// One certificate, in the parts that people and programs look at.
public struct CertificateFacts: Sendable, Equatable {
    public var pem: String
    /// As RFC 4514 writes it; so is `issuer`.
    public var subject: String
    public var issuer: String
    /// `2026-01-31T12:00:00Z`; empty when it is not a time. So is `notAfter`.
    public var notBefore: String
    public var notAfter: String
    /// Of the whole certificate in DER.
    public var sha256: [UInt8]
    /// Of its SubjectPublicKeyInfo in DER: the same for the same key.
    public var spkiSha256: [UInt8]
    /// `DNS:name`, `IP:address`; other kinds are left out.
    public var subjectAltNames: [String]

    public init(
        pem: String, subject: String, issuer: String, notBefore: String, notAfter: String, sha256: [UInt8],
        spkiSha256: [UInt8], subjectAltNames: [String]
    ) {
        self.pem = pem
        self.subject = subject
        self.issuer = issuer
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.sha256 = sha256
        self.spkiSha256 = spkiSha256
        self.subjectAltNames = subjectAltNames
    }
}

extension ServerTrustFacts {
    /// The member `serverTrust` of a protection space.
    public var json: JSON {
        let names = Problem.allCases.filter { problems.contains($0) }.map { JSON.string($0.rawValue) }
        return ["chain": .array(chain.map(\.json)), "problems": .array(names)]
    }
}

extension CertificateFacts {
    /// Fingerprints as hexadecimal digits in small letters.
    public var json: JSON {
        [
            "pem": .string(pem), "subject": .string(subject), "issuer": .string(issuer),
            "notBefore": .string(notBefore), "notAfter": .string(notAfter), "sha256": .string(Hexadecimal.text(sha256)),
            "spkiSha256": .string(Hexadecimal.text(spkiSha256)),
            "subjectAltNames": .array(subjectAltNames.map { .string($0) }),
        ]
    }
}

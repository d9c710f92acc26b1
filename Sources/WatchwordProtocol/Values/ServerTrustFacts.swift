public import JSONText

/// The certificate chain that a server has shown, and its problems.
public struct ServerTrustFacts: Sendable, Equatable {
    public enum Problem: String, Sendable, CaseIterable {
        /// The leaf certificate is self-signed.
        case selfSigned
        /// The chain does not lead to a trusted issuer, or is not valid for servers.
        case untrustedIssuer
        case expired, notYetValid
        /// No subject alternative name matches the host (RFC 9525; the subject is ignored).
        case hostMismatch
        /// A certificate is revoked. Detected only if revocation lists are available.
        case revoked
        /// A key or signature is below OpenSSL's security level.
        case weakKey
        /// The key differs from the one accepted for this server before.
        case changed
    }

    /// The leaf first, followed by the issuers that were found.
    public var chain: [CertificateFacts]
    public var problems: Set<Problem>

    public init(chain: [CertificateFacts], problems: Set<Problem>) {
        self.chain = chain
        self.problems = problems
    }
}

/// The parts of a certificate that people and programs examine.
public struct CertificateFacts: Sendable, Equatable {
    public var pem: String
    /// The subject in the form of RFC 4514.
    public var subject: String
    /// The issuer in the form of RFC 4514.
    public var issuer: String
    /// The start of the validity, such as `2026-01-31T12:00:00Z`; empty if the certificate contains no valid time.
    public var notBefore: String
    /// The end of the validity, in the same form.
    public var notAfter: String
    /// The SHA-256 of the certificate in DER.
    public var sha256: [UInt8]
    /// The SHA-256 of the SubjectPublicKeyInfo in DER, which identifies the key.
    public var spkiSha256: [UInt8]
    /// The names as `DNS:name` and `IP:address`; other kinds are omitted.
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
    /// The certificate as JSON, with lower-case hexadecimal fingerprints.
    public var json: JSON {
        [
            "pem": .string(pem), "subject": .string(subject), "issuer": .string(issuer),
            "notBefore": .string(notBefore), "notAfter": .string(notAfter), "sha256": .string(Hexadecimal.text(sha256)),
            "spkiSha256": .string(Hexadecimal.text(spkiSha256)),
            "subjectAltNames": .array(subjectAltNames.map { .string($0) }),
        ]
    }
}

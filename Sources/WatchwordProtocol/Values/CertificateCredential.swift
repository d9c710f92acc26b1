internal import JSONText

/// A client certificate with its key, as a client names it.
///
/// Each part is a path (from `/` on), PEM text, or a `pkcs11:` URI (RFC 7512). PKCS#12 is given as a path and holds the key.
public struct CertificateCredential: Sendable, Equatable {
    public var certificate: Secret
    /// `nil` where `certificate` holds the key too.
    public var privateKey: Secret?
    /// Of the key, or the PIN of the token.
    public var passphrase: Secret?
    /// `permanent` means for the session, too.
    public var persistence: Persistence
    /// The content that a server has accepted; never on the wire. `nil` as long as none has.
    public var acceptedContent: CertificateContent?

    public init(
        certificate: Secret, privateKey: Secret? = nil, passphrase: Secret? = nil,
        persistence: Persistence = .forSession
    ) {
        self.certificate = certificate
        self.privateKey = privateKey
        self.passphrase = passphrase
        self.persistence = persistence
    }

    /// Whether both show the same, with the same key unlocked in the same way.
    public func isSame(as other: CertificateCredential) -> Bool {
        certificate == other.certificate && privateKey == other.privateKey && passphrase == other.passphrase
    }
}

/// The identity that a certificate shows, whatever file or token it comes from: the SHA-256 of the certificate and of each
/// issuer that goes with it.
/// The key is part of it, because a key that does not belong to the certificate is not accepted.
public struct CertificateContent: Sendable, Hashable {
    private let sha256: [UInt8]

    public init(sha256: [UInt8]) { self.sha256 = sha256 }
}

extension CertificateCredential {
    init(_ members: Members) throws(InvalidParams) {
        try members.refuseMembers(otherThan: ["type", "certificate", "privateKey", "passphrase", "persistence"])
        certificate = try members.required("certificate", members.material("certificate"))
        privateKey = try members.material("privateKey")
        passphrase = try members.secret("passphrase", maxBytes: Limits.credentialBytes)
        persistence = try members.choice("persistence", as: Persistence.self) ?? .forSession
    }

    /// May hold a key: it must be written with `JSON.write(_:)`.
    var json: JSON {
        func string(_ secret: Secret) -> JSON { secret.withUnsafeBytes { JSON.string(secret: $0) } ?? .null }
        return [
            "type": "certificate", "certificate": string(certificate), "privateKey": privateKey.map(string),
            "passphrase": passphrase.map(string), "persistence": .string(persistence.rawValue),
        ]
    }
}

extension Members {
    fileprivate func material(_ name: String) throws(InvalidParams) -> Secret? {
        guard let text = try secret(name, maxBytes: Limits.certificateBytes) else { return nil }
        let isKnown = text.withUnsafeBytes { bytes in
            ["/", "-----BEGIN ", "pkcs11:"].contains { bytes.starts(with: $0.utf8) }
        }
        guard isKnown else { throw wrong(name, "an absolute path, PEM, or a pkcs11: URI") }
        return text
    }
}

/// That the certificate which was shown is good enough, whatever is wrong with it.
public struct TrustCredential: Sendable, Equatable {
    /// Of the leaf's SubjectPublicKeyInfo, as the challenge has shown it: 64 hexadecimal digits in small letters.
    public var spkiSha256: String
    public var persistence: Persistence

    public init(spkiSha256: String, persistence: Persistence = .none) {
        self.spkiSha256 = spkiSha256
        self.persistence = persistence
    }

    /// An exception holds for the one fetch, unless somebody says more.
    init(_ members: Members) throws(InvalidParams) {
        try members.refuseMembers(otherThan: ["type", "spkiSha256", "persistence"])
        spkiSha256 = try members.required("spkiSha256", members.string("spkiSha256")).asciiLowercased
        let isHash = spkiSha256.utf8.count == 64 && spkiSha256.allSatisfy(\.isHexDigit)
        guard isHash else { throw members.wrong("spkiSha256", "64 hexadecimal digits, those of the challenge") }
        persistence = try members.choice("persistence", as: Persistence.self) ?? .none
    }

    var json: JSON {
        ["type": "trust", "spkiSha256": .string(spkiSha256), "persistence": .string(persistence.rawValue)]
    }
}

internal import JSONText

/// A client certificate with its private key, as provided by a client.
///
/// Each part is an absolute path, PEM text, or a `pkcs11:` URI (RFC 7512). A PKCS#12 file is named by its path and contains the
/// key.
public struct CertificateCredential: Sendable, Equatable {
    public var certificate: Secret
    /// The private key; `nil` if `certificate` contains it.
    public var privateKey: Secret?
    /// The passphrase of the key, or the PIN of the token.
    public var passphrase: Secret?
    /// The persistence. `permanent` has the same effect as `forSession`.
    public var persistence: Persistence
    /// The content that a server has accepted, if any. Never sent in a message.
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

    /// Whether both have equal certificate, key and passphrase.
    public func isSame(as other: CertificateCredential) -> Bool {
        certificate == other.certificate && privateKey == other.privateKey && passphrase == other.passphrase
    }
}

/// The identity that a certificate shows, independent of its file or token: the SHA-256 of the certificate and of each issuer
/// sent with it.
///
/// It implies the key, because a key that does not match the certificate is not accepted.
public struct CertificateContent: Sendable, Hashable {
    private let sha256: [UInt8]

    public init(sha256: [UInt8]) { self.sha256 = sha256 }
}

extension CertificateCredential {
    init(_ members: Members) throws(InvalidParams) {
        certificate = try members.required("certificate", members.material("certificate"))
        privateKey = try members.material("privateKey")
        passphrase = try members.secret("passphrase", maxBytes: Limits.credentialBytes)
        persistence = try members.choice("persistence", as: Persistence.self) ?? .forSession
    }

    /// May contain a private key: serialize it with `JSON.write(_:)`.
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

/// A trust exception: the shown server certificate is accepted despite its problems.
public struct TrustCredential: Sendable, Equatable {
    /// The SHA-256 of the leaf's SubjectPublicKeyInfo, as in the challenge: 64 lower-case hexadecimal digits.
    public var spkiSha256: String
    public var persistence: Persistence

    public init(spkiSha256: String, persistence: Persistence = .none) {
        self.spkiSha256 = spkiSha256
        self.persistence = persistence
    }

    /// Parses an exception. Without `persistence` it applies to one fetch.
    init(_ members: Members) throws(InvalidParams) {
        spkiSha256 = try members.required("spkiSha256", members.string("spkiSha256")).asciiLowercased
        let isHash = spkiSha256.utf8.count == 64 && spkiSha256.allSatisfy(\.isHexDigit)
        guard isHash else { throw members.wrong("spkiSha256", "64 hexadecimal digits, as in the challenge") }
        persistence = try members.choice("persistence", as: Persistence.self) ?? .none
    }

    var json: JSON {
        ["type": "trust", "spkiSha256": .string(spkiSha256), "persistence": .string(persistence.rawValue)]
    }
}

internal import WatchwordProtocol

/// A remembered trust exception or client certificate, as `credential/list` lists it.
struct ConnectionDecision: Sendable {
    enum Kind: Sendable {
        case trust(TrustedKey, isPermanent: Bool)
        case certificate(CertificateCredential, Origin)
    }

    /// Identifies the decision while the broker runs.
    let number: Int
    /// The partition; `nil` for the shared one.
    let owner: Partition?
    let what: Kind
    /// `nil` if unknown.
    var lastUse: Duration?

    var id: CredentialID {
        switch what {
        case .trust: .trust(number)
        case .certificate: .certificate(number)
        }
    }

    var space: SpacePattern {
        switch what {
        case .trust(let key, _): SpacePattern(key.origin, .serverTrust)
        case .certificate(_, let origin): SpacePattern(origin, .clientCertificate)
        }
    }

    var isPermanent: Bool {
        if case .trust(_, isPermanent: true) = what { true } else { false }
    }

    /// Whether a connection with the authentication state `connectionKey` depends on this decision.
    func isBehind(_ connectionKey: ConnectionKey) -> Bool {
        switch what {
        case .trust(let key, _): connectionKey.origin == key.origin && connectionKey.trust?.spkiSha256 == key.spkiSha256
        case .certificate(let certificate, let origin):
            connectionKey.origin == origin && connectionKey.certificate?.isSame(as: certificate) == true
        }
    }

    func description(now: Duration) -> CredentialDescription {
        let kind: CredentialDescription.Kind =
            switch what {
            case .trust(let key, _): .trust(spkiSha256: key.spkiSha256)
            case .certificate(let certificate, _): .certificate(source: certificate.shownSource)
            }
        return CredentialDescription(
            id: id, kind: kind, pattern: space, persistence: isPermanent ? .permanent : .forSession, source: .session,
            lastUsed: lastUse.map { now - $0 })
    }
}

extension CredentialChange {
    /// A change of a remembered trust exception or client certificate of a server.
    init(_ kind: Kind, _ space: ProtectionSpace) { self.init(kind, SpacePattern(space), user: nil, source: .session) }
}

extension SpacePattern {
    fileprivate init(_ origin: Origin, _ method: AuthenticationMethod) {
        self.init(
            scheme: origin.scheme.rawValue, host: origin.host, port: origin.port, authenticationMethod: method)
    }
}

extension CertificateCredential {
    private static let longestShownSource = 4096

    /// The path, or the PKCS #11 URI without its PIN attributes. `nil` for PEM, which may contain the key, and for
    /// anything too long.
    var shownSource: String? {
        certificate.withUnsafeBytes { bytes in
            guard bytes.count <= Self.longestShownSource else { return nil }
            if bytes.first == UInt8(ascii: "/") { return String(validating: bytes, as: UTF8.self) }
            return bytes.starts(with: "pkcs11:".utf8) ? Self.uriWithoutPIN(bytes) : nil
        }
    }

    /// Removes `pin-value` and `pin-source`, which are query attributes (RFC 7512 section 2.4).
    private static func uriWithoutPIN(_ bytes: UnsafeRawBufferPointer) -> String? {
        let mark = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.endIndex
        let attributes = bytes[mark...].dropFirst().split(separator: UInt8(ascii: "&")).filter {
            !$0.starts(with: "pin-".utf8)  // guard: inventory-without-pin
        }
        let separator = attributes.isEmpty ? [] : [UInt8(ascii: "?")]
        return String(
            validating: bytes[..<mark] + separator + attributes.joined(separator: [UInt8(ascii: "&")]), as: UTF8.self)
    }
}

public import JSONText

/// The id of an entry of `credential/list`: `session:7`, `keyring:` and the object path of the keyring item, `trust:2`, or
/// `certificate:3`.
public enum CredentialID: Sendable, Hashable {
    case session(Int)
    case keyring(String)
    /// A trust exception for a server certificate.
    case trust(Int)
    /// A client certificate.
    case certificate(Int)

    public init?(_ text: String) {
        func number(after prefix: String) -> Int? { text.hasPrefix(prefix) ? Int(text.dropFirst(prefix.count)) : nil }
        if let number = number(after: "session:") {
            self = .session(number)
        } else if let number = number(after: "trust:") {
            self = .trust(number)
        } else if let number = number(after: "certificate:") {
            self = .certificate(number)
        } else if text.hasPrefix("keyring:/"), text.utf8.count <= 512 {
            self = .keyring(String(text.dropFirst(8)))
        } else {
            return nil
        }
    }

    public var text: String {
        switch self {
        case .session(let number): "session:\(number)"
        case .keyring(let name): "keyring:\(name)"
        case .trust(let number): "trust:\(number)"
        case .certificate(let number): "certificate:\(number)"
        }
    }
}

/// One entry of `credential/list`, without the secret.
public struct CredentialDescription: Sendable, Equatable {
    /// The type of the credential, named as in the answer to a challenge.
    public enum Kind: Sendable, Equatable {
        case password
        case token
        /// A trust exception for a server certificate, identified by its key: the SHA-256 of its SubjectPublicKeyInfo.
        case trust(spkiSha256: [UInt8])
        /// A client certificate, identified by its path or its `pkcs11:` URI; `nil` if it was provided as PEM.
        case certificate(source: String?)

        fileprivate var name: String {
            switch self {
            case .password: "password"
            case .token: "token"
            case .trust: "trust"
            case .certificate: "certificate"
            }
        }
    }

    public var id: CredentialID
    public var kind: Kind
    public var pattern: SpacePattern
    /// The user; only for a password.
    public var user: ExactText?
    /// The Windows domain, if it is separate from the user.
    public var domain: ExactText?
    /// The path at and below which the credential is valid; `nil` for the whole server.
    public var path: ExactText?
    /// The time when the credential expires, since 1970.
    public var expiresAt: Duration?
    public var persistence: Persistence
    public var source: CredentialSource
    public var isDefault: Bool
    /// The time since the last use; `nil` if unknown.
    public var lastUsed: Duration?

    public init(
        id: CredentialID, kind: Kind, pattern: SpacePattern, user: ExactText? = nil, domain: ExactText? = nil,
        path: ExactText? = nil, expiresAt: Duration? = nil, persistence: Persistence, source: CredentialSource,
        isDefault: Bool = false, lastUsed: Duration? = nil
    ) {
        self.id = id
        self.kind = kind
        self.pattern = pattern
        self.user = user
        self.domain = domain
        self.path = path
        self.expiresAt = expiresAt
        self.persistence = persistence
        self.source = source
        self.isDefault = isDefault
        self.lastUsed = lastUsed
    }

    public var json: JSON {
        var (key, certificate) = (JSON?.none, JSON?.none)
        switch kind {
        case .password, .token: break
        case .trust(let spkiSha256): key = .string(Hexadecimal.text(spkiSha256))
        case .certificate(let source): certificate = source.map { .string($0) }
        }
        return [
            "id": .string(id.text), "type": .string(kind.name), "protectionSpace": pattern.json,
            "user": user?.json ?? .null, "domain": domain?.json, "path": path?.json, "spkiSha256": key,
            "certificate": certificate,
            "expiresAt": expiresAt.map { .string(UTCTime.text($0.wholeMilliseconds)) },
            "persistence": .string(persistence.rawValue), "source": .string(source.rawValue),
            "isDefault": .boolean(isDefault), "lastUsedMs": lastUsed.map { .integer($0.wholeMilliseconds) },
        ]
    }
}

public import JSONText

/// Names an entry of `credential/list`: `session:7`, `keyring:` and the keyring's own name, `trust:2`, or `certificate:3`.
public enum CredentialID: Sendable, Hashable {
    case session(Int)
    case keyring(String)
    /// An accepted certificate of a server.
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

/// One entry of `credential/list`: everything but the secret.
public struct CredentialDescription: Sendable, Equatable {
    /// As in the credentials that answer a challenge.
    public enum Kind: Sendable, Equatable {
        case password
        case token
        /// A server's certificate that somebody has accepted, by its key: the SHA-256 of its SubjectPublicKeyInfo.
        case trust(spkiSha256: [UInt8])
        /// A client certificate, by its path or its `pkcs11:` URI; `nil` for one that came as PEM.
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
    /// `nil` for all but a password.
    public var user: ExactText?
    /// The Windows domain, where one was given apart from the user.
    public var domain: ExactText?
    /// What is good for this path and below only; `nil` for the whole server.
    public var path: ExactText?
    /// Since 1970.
    public var expiresAt: Duration?
    public var persistence: Persistence
    public var source: CredentialSource
    public var isDefault: Bool
    /// How long ago it was used last; `nil` when the broker does not know.
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

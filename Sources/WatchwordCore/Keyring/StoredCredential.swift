public import WatchwordProtocol

/// A keyring item read as a credential, with the spaces that it is for.
public struct StoredCredential: Sendable, Equatable {
    public let item: KeyringItem
    public let account: Account
    /// The spaces that the item was stored for.
    public let pattern: SpacePattern
    /// `nil` while the item is locked, and if its secret is malformed.
    let credential: LoginCredential?
    /// Whether the item names a URL scheme; a service name alone does not.
    let namesScheme: Bool
    let namesPort: Bool

    /// Returns `nil` for an item that was not stored for this challenger, or whose purpose is unknown.
    init?(_ item: KeyringItem, at challenger: Challenger) {
        let attributes = item.attributes
        guard let place = Self.place(attributes, at: challenger) else { return nil }
        var method: AuthenticationMethod?
        if let authtype = attributes["authtype"], !authtype.isEmpty {
            guard let known = KeyringAttributes.method(ofAuthtype: authtype) else { return nil }
            method = known
        }
        guard let account = KeyringAttributes.account(attributes, method) else { return nil }
        self.item = item
        self.account = account
        self.pattern = SpacePattern(
            scheme: challenger.scheme, host: challenger.host, port: challenger.port,
            realm: KeyringAttributes.realm(attributes, method), authenticationMethod: method,
            proxyType: challenger.proxyType)
        self.credential = item.secret.flatMap { KeyringSecret($0) }.map { secret in
            var credential = LoginCredential(
                user: account.user, password: secret.password, domain: account.domain, persistence: .permanent)
            credential.path = KeyringAttributes.path(attributes)
            credential.expiresAt = secret.expiresAt
            credential.refreshToken = secret.refreshToken
            return credential
        }
        self.namesScheme = place.namesScheme
        self.namesPort = place.namesPort
    }

    /// Whether the item is exactly what the broker would have stored for this space. Only then does a refusal apply to
    /// nothing else: an item with more or fewer attributes may be valid elsewhere.
    func isExact(for space: ProtectionSpace) -> Bool {
        guard !mayLackDomain, let credential, item.secret == KeyringSecret.text(of: credential) else { return false }
        return item.says(KeyringAttributes.attributes(for: SpacePattern(space), account, path: credential.path))
    }

    /// Whether this is an item for NTLM that may lack its domain; a refusal then says nothing about the password.
    private var mayLackDomain: Bool {
        pattern.authenticationMethod == .ntlm && account.domain == nil
            && !account.user.utf8.contains { $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "@") }
    }

    public var isPreferred: Bool { item.attributes[KeyringAttributes.preferred] == "1" }

    private struct Place {
        var namesScheme: Bool
        var namesPort: Bool
    }

    /// Returns which parts of the challenger's address the item names; `nil` if the item is for another challenger. A
    /// missing port means the default port of the scheme.
    private static func place(_ attributes: [ExactText: ExactText], at challenger: Challenger) -> Place? {
        guard case .server(let origin) = challenger else { return proxyPlace(attributes, at: challenger) }
        if let server = attributes["server"] {
            guard server.asciiLowercased == origin.host else { return nil }  // guard: keyring-host
            let scheme = attributes["protocol"].flatMap { $0.isEmpty ? nil : $0.asciiLowercased }
            let port = attributes["port"].flatMap { $0 == "0" || $0.isEmpty ? nil : $0 }
            return place(scheme: scheme?.string, port: port?.string, at: origin)
        }
        guard let service = attributes["service"]?.asciiLowercased else { return nil }
        let (host, port) = (origin.host, String(origin.port))
        switch service {
        case host: return place(scheme: nil, port: nil, at: origin)
        case "\(host):\(port)": return place(scheme: nil, port: port, at: origin)
        case "\(origin.scheme.rawValue)://\(host)", "\(origin.scheme.rawValue)://\(host)/":
            return place(scheme: origin.scheme.rawValue, port: nil, at: origin)
        case "\(origin.scheme.rawValue)://\(host):\(port)", "\(origin.scheme.rawValue)://\(host):\(port)/":
            return place(scheme: origin.scheme.rawValue, port: port, at: origin)
        default: return nil
        }
    }

    /// Matches only items that name this proxy exactly.
    private static func proxyPlace(_ attributes: [ExactText: ExactText], at proxy: Challenger) -> Place? {
        guard attributes["server"]?.asciiLowercased == proxy.host, attributes["port"] == "\(proxy.port)",
            // guard: keyring-server-is-no-proxy
            let type = proxy.proxyType, attributes["protocol"].flatMap(KeyringAttributes.proxyType) == type
        else { return nil }
        return Place(namesScheme: true, namesPort: true)
    }

    private static func place(scheme: String?, port: String?, at origin: Origin) -> Place? {
        guard scheme == nil || scheme == origin.scheme.rawValue else { return nil }
        // guard: keyring-port
        guard port.map({ $0 == String(origin.port) }) ?? (origin.port == origin.scheme.defaultPort) else { return nil }
        // An item without a scheme was not stored for a connection that can be read on the network (SEMANTICS rule 25).
        let isReadable = origin.scheme == .http && !origin.isLoopback
        guard scheme != nil || !isReadable else { return nil }  // guard: keyring-readable
        return Place(namesScheme: scheme != nil, namesPort: port != nil)
    }
}

/// A keyring item as `credential/list` shows it, with the space that its attributes name.
public struct StoredItem: Sendable, Equatable {
    public let id: String
    public let pattern: SpacePattern
    public let account: Account
    public let isDefault: Bool
    /// The path at and below which the item is valid; `nil` for the whole server.
    public let path: ExactText?
    /// The time, since 1970, when the credential expires; `nil` if unknown or if the secret was not requested.
    public let expiresAt: Duration?
    private let all: [ExactText: ExactText]

    /// Returns `nil` for an item without a server or a user, or with a protocol other than HTTP.
    public init?(_ item: KeyringItem) {
        let attributes = item.attributes
        let scheme = attributes["protocol"]?.asciiLowercased
        let proxyType = scheme.flatMap(KeyringAttributes.proxyType)
        let method = attributes["authtype"].flatMap { KeyringAttributes.method(ofAuthtype: $0) }
        guard let server = attributes["server"], !server.isEmpty,
            let account = KeyringAttributes.account(attributes, method), let scheme,
            scheme == "http" || scheme == "https" || proxyType != nil
        else { return nil }
        let port = attributes["port"].flatMap { Int($0.string) } ?? 0
        guard (0...65_535).contains(port) else { return nil }
        id = item.id
        self.account = account
        isDefault = item.isMarkedDefault
        path = KeyringAttributes.path(attributes)
        expiresAt = item.secret.flatMap { KeyringSecret($0) }?.expiresAt
        all = attributes
        pattern = SpacePattern(
            scheme: scheme.string, host: server,
            port: port > 0 ? port : proxyType?.defaultPort ?? (scheme == "https" ? 443 : 80),
            realm: KeyringAttributes.realm(attributes, method), authenticationMethod: method, proxyType: proxyType)
    }

    /// Whether both items are for the same space and path, which have one default.
    public func isBeside(_ other: StoredItem) -> Bool {
        pattern == other.pattern && path == other.path
    }

    /// Returns the attributes of the item, with or without the mark of the default.
    public func attributes(isDefault: Bool) -> [ExactText: ExactText] {
        var attributes = all
        attributes[KeyringAttributes.preferred] = isDefault ? "1" : nil
        return attributes
    }
}

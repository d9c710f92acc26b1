public import WatchwordProtocol

/// An item of the keyring, read as a credential: for which spaces, and how exactly it says so.
public struct StoredCredential: Sendable, Equatable {
    public let item: KeyringItem
    public let account: Account
    /// Which spaces it was stored for.
    public let pattern: SpacePattern
    /// `nil` while the item is locked, and for one that cannot be read.
    let credential: LoginCredential?
    /// Names the scheme of the URL; a service name alone does not.
    let namesScheme: Bool
    let namesPort: Bool

    /// `nil` for an item that was not stored for `origin`, or that nobody can tell what it is for.
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

    /// Whether it says exactly what we would have stored for this space, so that a refusal speaks of it and nothing else. What
    /// says more, or less, may be right elsewhere.
    func isExact(for space: ProtectionSpace) -> Bool {
        guard !mayLackDomain, let credential, item.secret == KeyringSecret.text(of: credential) else { return false }
        return item.says(KeyringAttributes.attributes(for: SpacePattern(space), account, path: credential.path))
    }

    /// An item for NTLM that names no domain may have lost it: a refusal says nothing about its password.
    private var mayLackDomain: Bool {
        pattern.authenticationMethod == .ntlm && account.domain == nil
            && !account.user.utf8.contains { $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "@") }
    }

    public var isPreferred: Bool { item.attributes[KeyringAttributes.preferred] == "1" }

    private struct Place {
        var namesScheme: Bool
        var namesPort: Bool
    }

    /// Whether the item is about this server, or this proxy, and no other one: what it leaves out must be what is usual.
    private static func place(_ attributes: [ExactText: ExactText], at challenger: Challenger) -> Place? {
        guard case .server(let origin) = challenger else { return proxyPlace(attributes, at: challenger) }
        if let server = attributes["server"] {
            guard server.asciiLowercased == origin.host else { return nil }
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

    /// Only what says of itself that it is for this proxy.
    private static func proxyPlace(_ attributes: [ExactText: ExactText], at proxy: Challenger) -> Place? {
        guard attributes["server"]?.asciiLowercased == proxy.host, attributes["port"] == "\(proxy.port)",
            let type = proxy.proxyType, attributes["protocol"].flatMap(KeyringAttributes.proxyType) == type
        else { return nil }
        return Place(namesScheme: true, namesPort: true)
    }

    private static func place(scheme: String?, port: String?, at origin: Origin) -> Place? {
        guard scheme == nil || scheme == origin.scheme.rawValue else { return nil }
        guard port.map({ $0 == String(origin.port) }) ?? (origin.port == origin.scheme.defaultPort) else { return nil }
        // Stored for no scheme in particular, it was not stored for the one that everybody on the way can read
        // (semantics rule 25).
        let isReadable = origin.scheme == .http && !origin.isLoopback
        guard scheme != nil || !isReadable else { return nil }
        return Place(namesScheme: scheme != nil, namesPort: port != nil)
    }
}

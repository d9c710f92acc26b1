public import WatchwordProtocol

/// An item of the keyring, read as a credential: for which spaces, and how exactly it says so.
public struct StoredCredential: Sendable, Equatable {
    public let item: KeyringItem
    public let account: Account
    /// Which spaces it was stored for.
    public let pattern: SpacePattern
    /// A path that it is good for only; `nil` for the whole server.
    let path: String?
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
        self.path = attributes["object"].flatMap { $0.isEmpty ? nil : $0.hasPrefix("/") ? $0 : "/" + $0 }
        self.namesScheme = place.namesScheme
        self.namesPort = place.namesPort
    }

    /// Whether it says exactly what we would have stored for this space, so that a refusal speaks of it and nothing else. What
    /// says more, or less, may be right elsewhere.
    func isExact(for space: ProtectionSpace) -> Bool {
        !mayLackDomain && item.says(KeyringAttributes.attributes(for: SpacePattern(space), account))
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
    private static func place(_ attributes: [String: String], at challenger: Challenger) -> Place? {
        guard case .server(let origin) = challenger else { return proxyPlace(attributes, at: challenger) }
        if let server = attributes["server"] {
            guard server.asciiLowercased == origin.host else { return nil }
            let scheme = attributes["protocol"].flatMap { $0.isEmpty ? nil : $0.asciiLowercased }
            let port = attributes["port"].flatMap { $0 == "0" || $0.isEmpty ? nil : $0 }
            return place(scheme: scheme, port: port, at: origin)
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
    private static func proxyPlace(_ attributes: [String: String], at proxy: Challenger) -> Place? {
        guard attributes["server"]?.asciiLowercased == proxy.host, attributes["port"] == String(proxy.port),
            let type = proxy.proxyType, attributes["protocol"] == KeyringAttributes.protocolName(of: type)
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

/// What a look-up in the keyring comes to for one space.
enum KeyringFinding: Sendable, Equatable {
    case none
    /// The one that fits best.
    case credential(LoginCredential, item: String, isExact: Bool)
    /// Several fit equally well: whoever is asked decides.
    case undecided

    /// The item that fits best, and never a guess between equals.
    init(
        _ items: [KeyringItem], for space: ProtectionSpace, at challenger: Challenger, path: String, user: Account?
    ) {
        self.init(
            items, at: challenger, path: path, user: user, exactly: { $0.isExact(for: space) },
            fitting: { $0.matches(space) })
    }

    init(
        _ items: [KeyringItem], at challenger: Challenger, path: String, user: Account?,
        exactly: (StoredCredential) -> Bool, fitting isFitting: (SpacePattern) -> Bool
    ) {
        let fitting = items.compactMap { StoredCredential($0, at: challenger) }.filter { stored in
            stored.item.secret != nil && isFitting(stored.pattern) && (user?.admits(stored.account) ?? true)
                && stored.covers(path)
        }
        let best = fitting.map(\.rank).max()
        let equals = fitting.filter { $0.rank == best }
        guard let chosen = Self.choose(equals), let secret = chosen.item.secret else {
            self = equals.isEmpty ? .none : .undecided
            return
        }
        let credential = LoginCredential(
            user: chosen.account.user, password: secret, domain: chosen.account.domain, persistence: .permanent)
        self = .credential(credential, item: chosen.item.id, isExact: exactly(chosen))
    }

    private static func choose(_ equals: [StoredCredential]) -> StoredCredential? {
        guard let first = equals.first else { return nil }
        if equals.allSatisfy({ $0.account == first.account && $0.item.secret == first.item.secret }) { return first }
        let preferred = equals.filter(\.isPreferred)
        return preferred.count == 1 ? preferred[0] : nil
    }
}

extension StoredCredential {
    /// At its path and below; `/a` is not good for `/ab`.
    fileprivate func covers(_ requested: String) -> Bool {
        guard let path, requested != path else { return true }
        return requested.hasPrefix(path.hasSuffix("/") ? path : path + "/")
    }

    /// Exact port and realm first, then the method, then a path, then the scheme.
    fileprivate var rank: Int {
        (namesPort ? 16 : 0) + (pattern.realm != nil ? 8 : 0) + (pattern.authenticationMethod != nil ? 4 : 0)
            + (path != nil ? 2 : 0) + (namesScheme ? 1 : 0)
    }
}

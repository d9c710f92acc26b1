public import JSONText

/// A pattern for the protection spaces of one server or proxy, optionally restricted to one realm and one method.
public struct SpacePattern: ClientValue, Sendable, Hashable {
    /// `http` or `https`; the type for a proxy.
    public var scheme: String
    /// The type of the proxy; `nil` for a server.
    public var proxyType: ProxyType?
    /// The host in lower case; an IPv6 address has brackets.
    public var host: ExactText
    public var port: Int
    /// The realm as people read it; `nil` matches every realm.
    public var realm: ExactText?
    /// The method; `nil` matches every method. For `credential/get`, `nil` means a password.
    public var authenticationMethod: AuthenticationMethod?

    public init(
        scheme: String, host: ExactText, port: Int, realm: ExactText? = nil,
        authenticationMethod: AuthenticationMethod? = nil, proxyType: ProxyType? = nil
    ) {
        self.scheme = proxyType?.rawValue ?? scheme
        self.proxyType = proxyType
        self.host = host.asciiLowercased
        self.port = port
        self.realm = realm
        self.authenticationMethod = authenticationMethod
    }

    public init(_ space: ProtectionSpace) {
        (scheme, proxyType, host, port) = (space.scheme, space.proxyType, space.host, space.port)
        (realm, authenticationMethod) = (space.realm?.readable, space.authenticationMethod)
    }

    public func matches(_ space: ProtectionSpace) -> Bool {
        scheme == space.scheme && proxyType == space.proxyType && host == space.host && port == space.port
            && (authenticationMethod ?? space.authenticationMethod) == space.authenticationMethod
            && (realm == nil || realm == space.realm?.readable)
    }

    /// Whether this pattern matches every space that `other` matches.
    public func contains(_ other: SpacePattern) -> Bool {
        scheme == other.scheme && proxyType == other.proxyType && host == other.host && port == other.port
            && (authenticationMethod == nil || authenticationMethod == other.authenticationMethod)
            && (realm == nil || realm == other.realm)
    }

    /// Whether a space can match both patterns.
    public func overlaps(_ other: SpacePattern) -> Bool {
        var (wide, narrow) = (self, other)
        if wide.realm == nil { narrow.realm = nil } else if narrow.realm == nil { wide.realm = nil }
        if wide.authenticationMethod == nil {
            narrow.authenticationMethod = nil
        } else if narrow.authenticationMethod == nil {
            wide.authenticationMethod = nil
        }
        return wide.contains(narrow)
    }

    /// The members of a challenge's space that a pattern ignores.
    private static let otherMembers = ["receivesCredentialSecurely", "serverTrust", "distinguishedNames"]

    public init(_ members: Members) throws(InvalidParams) {
        for name in Self.otherMembers { _ = members[name] }
        proxyType = try ProxyType(members)
        let named = try members.required("protocol", members.string("protocol")).asciiLowercased
        scheme = proxyType?.rawValue ?? named
        host = try members.required("host", members.exactText("host")).asciiLowercased
        port =
            try members.integer("port", in: 1...65_535) ?? proxyType?.defaultPort ?? (scheme == "https" ? 443 : 80)
        realm = try members.exactText("realm")
        authenticationMethod = try members.choice("authenticationMethod", as: AuthenticationMethod.self)
        try members.refuseUnread()
        guard proxyType != nil || scheme == "http" || scheme == "https" else {
            throw members.wrong("protocol", "http or https")
        }
        guard HostName.canonical(host.string) != nil else {
            throw members.wrong("host", "the name or the address of a host")
        }
    }

    public var json: JSON {
        [
            "protocol": .string(scheme), "host": host.json, "port": .integer(port),
            "realm": realm?.json ?? .null,
            "authenticationMethod": authenticationMethod.map { .string($0.rawValue) } ?? .null,
            "isProxy": .boolean(proxyType != nil), "proxyType": proxyType.map { .string($0.rawValue) },
        ]
    }
}

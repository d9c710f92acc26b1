public import JSONText

/// The way in which a server or a proxy authenticates a client, or is authenticated itself (`serverTrust`).
public enum AuthenticationMethod: String, Sendable, Hashable, CaseIterable {
    case httpBasic, httpDigest, ntlm, negotiate, bearer, other, clientCertificate, serverTrust

    /// Returns the method of an HTTP authentication scheme. Letter case does not matter (RFC 9110 section 11.1).
    public init(scheme: String) {
        self =
            switch scheme.asciiLowercased {
            case "basic": .httpBasic
            case "digest": .httpDigest
            case "ntlm": .ntlm
            case "negotiate": .negotiate
            // Tokens that are bound to a key (RFC 9449) are obtained and stored like others.
            case "bearer", "dpop": .bearer
            default: .other
            }
    }
}

/// The protocol of a proxy.
public enum ProxyType: String, Sendable, Hashable, CaseIterable {
    /// HTTP, or HTTP over TLS to the proxy.
    case http, https
    /// SOCKS 5 (RFC 1928), with names resolved by the proxy.
    case socks

    /// The port if none is given, as in curl.
    public var defaultPort: Int { self == .https ? 443 : 1080 }
}

/// The space in which a credential is valid: a realm of a server or proxy, with one authentication method (RFC 9110
/// section 11.5).
///
/// Spaces are equal if all members are: the host in lower case, the port as a number, the realm byte by byte. The space of a
/// server never equals the space of a proxy.
public struct ProtectionSpace: Sendable, Hashable {
    /// `http` or `https`; the type for a proxy.
    public var scheme: String
    /// The type of the proxy; `nil` for a server.
    public var proxyType: ProxyType?
    /// The host in lower case; an IPv6 address has brackets.
    public var host: ExactText
    public var port: Int
    /// The realm; `nil` if the challenge named none.
    public var realm: ExactText?
    public var authenticationMethod: AuthenticationMethod

    public init(
        scheme: String, host: ExactText, port: Int, realm: ExactText?, authenticationMethod: AuthenticationMethod,
        proxyType: ProxyType? = nil
    ) {
        self.scheme = proxyType?.rawValue ?? scheme
        self.proxyType = proxyType
        self.host = host.asciiLowercased
        self.port = port
        self.realm = realm
        self.authenticationMethod = authenticationMethod
    }

    /// Without the parts that few spaces of one place differ in.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
        hasher.combine(realm)
    }

    /// Whether the password is protected from others on the network path: by TLS, or by Digest or Negotiate, which do not send
    /// it. NTLM does not count, because the password can be guessed from its messages.
    public var receivesCredentialSecurely: Bool {
        scheme == "https" || authenticationMethod == .httpDigest || authenticationMethod == .negotiate
    }

    public var json: JSON { json(isSecure: receivesCredentialSecurely) }

    func json(isSecure: Bool) -> JSON {
        [
            "protocol": .string(scheme), "host": host.json, "port": .integer(port),
            "realm": realm?.readable.json ?? .null,
            "authenticationMethod": .string(authenticationMethod.rawValue),
            "isProxy": .boolean(proxyType != nil), "proxyType": proxyType.map { .string($0.rawValue) },
            "receivesCredentialSecurely": .boolean(isSecure),
        ]
    }

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, at: "protectionSpace")
        proxyType = try ProxyType(members)
        scheme = try members.required("protocol", members.string("protocol"))
        if let proxyType { scheme = proxyType.rawValue }
        host = try members.required("host", members.exactText("host")).asciiLowercased
        port = try members.required("port", members.integer("port", in: 1...65_535))
        realm = try members.exactText("realm")
        authenticationMethod = try members.required(
            "authenticationMethod", members.choice("authenticationMethod", as: AuthenticationMethod.self))
    }
}

extension ProxyType {
    /// Parses the proxy type of a space; `nil` for the space of a server. Without `proxyType`, `protocol` is used.
    init?(_ members: Members) throws(InvalidParams) {
        let type = try members.choice("proxyType", as: ProxyType.self)
        guard try members.boolean("isProxy") == true else { return nil }
        if let type {
            self = type
        } else {
            self = try members.required("proxyType", members.choice("protocol", as: ProxyType.self))
        }
    }
}

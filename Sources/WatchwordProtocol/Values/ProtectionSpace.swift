public import JSONText

/// How a server or a proxy wants to know who asks.
public enum AuthenticationMethod: String, Sendable, Hashable, CaseIterable {
    case httpBasic, httpDigest, ntlm, negotiate, bearer, other, clientCertificate, serverTrust

    /// The method of an HTTP authentication scheme, whose name compares without regard to case (RFC 9110 section 11.1).
    public init(scheme: String) {
        self =
            switch scheme.asciiLowercased {
            case "basic": .httpBasic
            case "digest": .httpDigest
            case "ntlm": .ntlm
            case "negotiate": .negotiate
            case "bearer": .bearer
            default: .other
            }
    }
}

/// What a proxy speaks.
public enum ProxyType: String, Sendable, Hashable, CaseIterable {
    /// HTTP; `https` is HTTP over TLS to the proxy.
    case http, https
    /// SOCKS 5 (RFC 1928), with names resolved by the proxy.
    case socks

    /// Used where none is given, as curl does.
    public var defaultPort: Int { self == .https ? 443 : 1080 }
}

/// What a credential is for: a realm of a server, under one method (RFC 9110 section 11.5).
///
/// Two spaces are equal when all members are: the host in small letters, the port as number, the realm byte for byte. That
/// of a server and that of a proxy never are.
public struct ProtectionSpace: Sendable, Hashable {
    /// `http` or `https`; the type of a proxy.
    public var scheme: String
    /// `nil` for a server.
    public var proxyType: ProxyType?
    /// In small letters; an IPv6 address with its brackets.
    public var host: ExactText
    public var port: Int
    /// `nil` when the challenge named none.
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

    /// Whether an answer travels so that nobody on the way can read or use the password: over TLS, or by a scheme that does
    /// not send it.
    public var receivesCredentialSecurely: Bool {
        scheme == "https" || authenticationMethod == .httpDigest || authenticationMethod == .negotiate
    }

    public var json: JSON {
        [
            "protocol": .string(scheme), "host": host.json, "port": .integer(port),
            "realm": realm?.json ?? .null,
            "authenticationMethod": .string(authenticationMethod.rawValue),
            "isProxy": .boolean(proxyType != nil), "proxyType": proxyType.map { .string($0.rawValue) },
            "receivesCredentialSecurely": .boolean(receivesCredentialSecurely),
        ]
    }

    /// - Throws: `InvalidParams`.
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
    /// Of a space in JSON; `nil` for that of a server. `protocol` is as good as `proxyType`.
    init?(_ members: Members) throws(InvalidParams) {
        guard try members.boolean("isProxy") == true else { return nil }
        if let type = try members.choice("proxyType", as: ProxyType.self) {
            self = type
        } else {
            self = try members.required("proxyType", members.choice("protocol", as: ProxyType.self))
        }
    }
}

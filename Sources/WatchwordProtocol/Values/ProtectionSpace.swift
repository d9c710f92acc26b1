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

/// What a credential is for: a realm of a server, under one method (RFC 9110 section 11.5).
///
/// Two spaces are equal when all members are: the host in small letters, the port as number, the realm byte for byte.
public struct ProtectionSpace: Sendable, Hashable {
    /// `http` or `https`.
    public var scheme: String
    /// In small letters; an IPv6 address with its brackets.
    public var host: String
    public var port: Int
    /// `nil` when the challenge named none.
    public var realm: String?
    public var authenticationMethod: AuthenticationMethod

    public init(scheme: String, host: String, port: Int, realm: String?, authenticationMethod: AuthenticationMethod) {
        self.scheme = scheme
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

    /// As Swift compares strings, "é" has two spellings that are equal; realms compare byte for byte.
    public static func == (left: ProtectionSpace, right: ProtectionSpace) -> Bool {
        left.scheme == right.scheme && left.host == right.host && left.port == right.port
            && left.authenticationMethod == right.authenticationMethod
            && (left.realm == nil) == (right.realm == nil)
            && (left.realm ?? "").utf8.elementsEqual((right.realm ?? "").utf8)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(scheme)
        hasher.combine(host)
        hasher.combine(port)
        hasher.combine(authenticationMethod)
    }

    public var json: JSON {
        .object([
            "protocol": .string(scheme), "host": .string(host), "port": .integer(port),
            "realm": realm.map { .string($0) } ?? .null,
            "authenticationMethod": .string(authenticationMethod.rawValue), "isProxy": false,
            "receivesCredentialSecurely": .boolean(receivesCredentialSecurely),
        ])
    }

    /// Refuses the space of a proxy: read as one of a server it would match where it never may.
    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, at: "protectionSpace")
        scheme = try members.required("protocol", members.string("protocol"))
        host = try members.required("host", members.string("host")).asciiLowercased
        port = try members.required("port", members.integer("port", in: 1...65_535))
        realm = try members.string("realm")
        authenticationMethod = try members.required(
            "authenticationMethod", members.choice("authenticationMethod", as: AuthenticationMethod.self))
        if try members.boolean("isProxy") == true { throw members.wrong("isProxy", "false") }
    }
}

public import WatchwordProtocol

/// The attributes of credentials in the keyring, as this broker and other programs write them.
///
/// The broker uses the schema `org.gnome.keyring.NetworkPassword` of libsecret and GNOME: `user`, `server`, `protocol`,
/// `port`, `object` for the path, `domain`, `authtype`. `domain` is the realm, as in libsoup's items. For NTLM, which
/// has no realm, it is the Windows domain, as in GVfs's items. Other programs write less: git's helper omits port and
/// realm, Python's keyring writes `service` and `username`.
public enum KeyringAttributes {
    /// Marks the default among several users of one space.
    static let preferred: ExactText = "watchword-default"
    /// The Windows domain in an item that is not for NTLM, where `domain` is the realm.
    static let windowsDomain: ExactText = "watchword-domain"

    /// Returns the queries that find everything that any program may have stored for a server or a proxy.
    static func queries(for challenger: Challenger) -> [[ExactText: ExactText]] {
        guard case .server(let origin) = challenger else { return [["server": challenger.host]] }
        var services: [ExactText] = [
            ExactText(origin.text), "\(origin.text)/", "\(origin.scheme.rawValue)://\(origin.host):\(origin.port)",
        ]
        services += ["\(origin.host):\(origin.port)", origin.host]
        var unique: [ExactText] = []
        for service in services where !unique.contains(service) { unique.append(service) }
        return [["server": origin.host]] + unique.map { ["service": $0] }
    }

    /// Returns the attributes with which the broker stores a credential.
    static func attributes(
        for pattern: SpacePattern, _ account: Account, path: ExactText? = nil
    ) -> [ExactText: ExactText] {
        var attributes: [ExactText: ExactText] = [
            "user": account.user, "server": pattern.host,
            "protocol": ExactText(pattern.proxyType.map(protocolName) ?? pattern.scheme), "port": "\(pattern.port)",
        ]
        if pattern.authenticationMethod == .ntlm {
            attributes["domain"] = account.domain
        } else {
            if let realm = pattern.realm, !realm.isEmpty { attributes["domain"] = realm }
            attributes[windowsDomain] = account.domain
        }
        if let path { attributes["object"] = ExactText(path.string.dropFirst()) }
        if let method = pattern.authenticationMethod { attributes["authtype"] = ExactText(authtype(method)) }
        return attributes
    }

    /// The attributes that identify the user of an item, rather than its protection space.
    static func ofAccount(in pattern: SpacePattern) -> Set<ExactText> {
        ["user", pattern.authenticationMethod == .ntlm ? "domain" : windowsDomain]
    }

    /// Returns the path of the item with its leading slash; `nil` for the whole server. Like git, the broker stores the
    /// path without that slash.
    static func path(_ attributes: [ExactText: ExactText]) -> ExactText? {
        guard let object = attributes["object"], !object.isEmpty, object != "/" else { return nil }
        return object.hasPrefix("/") ? object : "/\(object)"
    }

    static func realm(_ attributes: [ExactText: ExactText], _ method: AuthenticationMethod?) -> ExactText? {
        method == .ntlm ? nil : attributes["domain"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns `nil` for an item without a user.
    static func account(_ attributes: [ExactText: ExactText], _ method: AuthenticationMethod?) -> Account? {
        guard let user = attributes["user"] ?? attributes["username"], !user.isEmpty else { return nil }
        return Account(user: user, domain: attributes[method == .ntlm ? "domain" : windowsDomain])
    }

    /// Returns the value of `protocol` for a proxy: not a URL scheme, so that no program uses a proxy's credential for
    /// a server.
    static func protocolName(of type: ProxyType) -> String { type == .socks ? "socks" : "\(type.rawValue)-proxy" }

    static func proxyType(ofProtocol name: ExactText) -> ProxyType? {
        ProxyType.allCases.first { ExactText(protocolName(of: $0)) == name }
    }

    /// Returns the value of `authtype`, as GNOME programs use it.
    static func authtype(_ method: AuthenticationMethod) -> String {
        switch method {
        case .httpBasic: "basic"
        case .httpDigest: "digest"
        default: method.rawValue
        }
    }

    static func method(ofAuthtype text: ExactText) -> AuthenticationMethod? {
        switch text.asciiLowercased {
        case "basic", "httpbasic": .httpBasic
        case "digest", "httpdigest": .httpDigest
        case "ntlm": .ntlm
        case "negotiate", "gssapi", "kerberos": .negotiate
        default: nil
        }
    }

    /// Returns the query that finds everything that may be stored for the server of `pattern`.
    public static func searchQuery(for pattern: SpacePattern) -> [ExactText: ExactText] { ["server": pattern.host] }

    /// The query that finds everything stored with the schema of network passwords.
    public static let everything: [ExactText: ExactText] = ["xdg:schema": "org.gnome.keyring.NetworkPassword"]

    /// Returns the label, which programs that manage the keyring show.
    static func label(for pattern: SpacePattern, _ account: Account) -> String {
        let place = "\(pattern.scheme)://\(pattern.host):\(pattern.port)"
        return "\(account.text.shortened) at \(place)" + (pattern.realm.map { " (\($0.shortened))" } ?? "")
    }
}

public import WatchwordProtocol

/// How credentials are described in the keyring, by us and by others.
///
/// Ours follow the schema `org.gnome.keyring.NetworkPassword` of libsecret and GNOME: `user`, `server`, `protocol`, `port`,
/// `object` for the path, `domain`, `authtype`. `domain` is the realm, as in libsoup's items; with the `authtype` of NTLM, which has no realm, it is
/// the Windows domain, as in GVfs's. Others write less: git's helper leaves out port and realm, Python's keyring writes `service`
/// and `username`.
public enum KeyringAttributes {
    /// Marks the default among several users of one space.
    static let preferred: ExactText = "watchword-default"
    /// The Windows domain in an item that is for other schemes as well, where `domain` is the realm.
    static let windowsDomain: ExactText = "watchword-domain"

    /// What to look for at a server or a proxy: all that anybody may have stored for it.
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

    /// How a credential of ours is described.
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

    /// The attributes that say whose an item is, and not what it is for.
    static func ofAccount(in pattern: SpacePattern) -> Set<ExactText> {
        ["user", pattern.authenticationMethod == .ntlm ? "domain" : windowsDomain]
    }

    /// From "/" on; `nil` for the whole server. git writes paths without the slash, and so do we.
    static func path(_ attributes: [ExactText: ExactText]) -> ExactText? {
        guard let object = attributes["object"], !object.isEmpty, object != "/" else { return nil }
        return object.hasPrefix("/") ? object : "/\(object)"
    }

    static func realm(_ attributes: [ExactText: ExactText], _ method: AuthenticationMethod?) -> ExactText? {
        method == .ntlm ? nil : attributes["domain"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// `nil` for an item without a user.
    static func account(_ attributes: [ExactText: ExactText], _ method: AuthenticationMethod?) -> Account? {
        guard let user = attributes["user"] ?? attributes["username"], !user.isEmpty else { return nil }
        return Account(user: user, domain: attributes[method == .ntlm ? "domain" : windowsDomain])
    }

    /// So that what is for a proxy is taken for a server's by nobody.
    static func protocolName(of type: ProxyType) -> String { type == .socks ? "socks" : "\(type.rawValue)-proxy" }

    static func proxyType(ofProtocol name: ExactText) -> ProxyType? {
        ProxyType.allCases.first { ExactText(protocolName(of: $0)) == name }
    }

    /// The words that GNOME's programs use.
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

    /// What finds everything that may be stored for the server of `pattern`.
    public static func searchQuery(for pattern: SpacePattern) -> [ExactText: ExactText] { ["server": pattern.host] }

    /// Finds what was stored with the schema of network passwords.
    public static let everything: [ExactText: ExactText] = ["xdg:schema": "org.gnome.keyring.NetworkPassword"]

    /// What a person sees in the keyring's own program.
    static func label(for pattern: SpacePattern, _ account: Account) -> String {
        let place = "\(pattern.scheme)://\(pattern.host):\(pattern.port)"
        return "\(account.text.shortened) at \(place)" + (pattern.realm.map { " (\($0.shortened))" } ?? "")
    }
}

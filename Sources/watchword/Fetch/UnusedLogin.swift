import JSONText
import WatchwordProtocol

/// A response of status 401 or 407 to a fetch that has not logged in: what was offered, and what each scheme would have needed.
/// Said is what the response and the command show; of the configuration only what has to be in it.
struct UnusedLogin {
    private let status: Int
    private let site: String
    private let host: String
    private let schemes: [String]
    /// The proxy says that a connection through it leads to one server.
    private let hasSessionThroughProxy: Bool
    private let params: FetchRunParams

    /// `nil` for any other response.
    init?(_ result: JSON, _ params: FetchRunParams) {
        status = result["status"]?.integer ?? 0
        guard status == 401 || status == 407 else { return nil }
        let accepted = result[status == 401 ? "auth" : "proxyAuth"]
        guard accepted == nil || accepted == .null else { return nil }
        self.params = params
        let field = status == 401 ? "WWW-Authenticate" : "Proxy-Authenticate"
        schemes = OfferedSchemes.names(in: Self.values(of: field, in: result))
        hasSessionThroughProxy = Self.values(of: "Proxy-Support", in: result).contains {
            $0.lowercased() == "session-based-authentication"
        }
        site = DisplayURL.origin(result["url"]?.string ?? "")
        host = status == 401 ? "\"\(Self.host(site))\"" : Self.proxyHost(params)
    }

    /// Whether the command says that a log-in is wanted. What is for the server cannot be sent either while a proxy refuses.
    var wasAskedFor: Bool {
        if params.credential != nil || params.userInfo != nil || params.methods != nil { return true }
        guard status == 407, case .named(let proxy) = params.proxy else { return false }
        return proxy.credential != nil || proxy.userInfo != nil
    }

    /// `nil` where there is nothing to say: no log-in was offered, and none was asked for.
    var text: String? {
        guard !schemes.isEmpty else {
            return wasAskedFor ? "\(subject), and offers no scheme to log in with." : nil
        }
        var named: [(reason: String, schemes: [String])] = []
        for scheme in schemes {
            let reason = reason(scheme)
            if let index = named.firstIndex(where: { $0.reason == reason }) {
                named[index].schemes.append(scheme)
            } else {
                named.append((reason, [scheme]))
            }
        }
        let sentences = named.map { "\($0.schemes.joined(separator: ", ")): \($0.reason)." }
        let offers = "It offers \(schemes.joined(separator: ", "))."
        return "\(subject), and has accepted no log-in. \(offers) \(sentences.joined(separator: " "))"
    }

    /// Whether the person at the terminal was asked by the one whose response this is.
    func isAnswer(to challenge: JSON) -> Bool {
        let isProxy = SpaceText.isProxy(challenge)
        return status == 407 ? isProxy : !isProxy && SpaceText.site(challenge) == site
    }

    /// Whether a proxy says 407, or a server behind it, is not known here.
    private var subject: String { status == 401 ? "\(site) answers with status 401" : "The answer has status 407" }

    private func reason(_ scheme: String) -> String {
        let method = AuthenticationMethod(scheme: scheme)
        if let methods = params.methods, !methods.contains(method) { return "not among what the command names" }
        switch method {
        case .negotiate:
            return "\(needs("negotiate")), and a Kerberos ticket (kinit) that is accepted\(limitsOfTickets)"
        case .ntlm: return "\(needs("ntlm"))\(limitsOfNTLM)"
        case .bearer where !isEncrypted:
            return "needs https, or a \(status == 401 ? "server" : "proxy") on this machine itself"
        case .httpBasic, .httpDigest, .bearer:
            return "perhaps left out by schemes.order of the configuration, or not a challenge as its standard has it"
        case .other, .clientCertificate, .serverTrust: return "not known here; an agent may know it"
        }
    }

    private func needs(_ key: String) -> String { "needs \(host) in schemes.\(key) of the configuration" }

    /// The user of a command is for the server that it names: after a redirect tickets may be used all the same.
    private var limitsOfTickets: String {
        var text = ""
        if status == 401, params.maxRedirects == 0, params.credential != nil || params.userInfo != nil {
            text += ", and a command that names no user and no token"
        }
        if case .named = params.proxy { text += ", and no proxy that only the command names" }
        return text
    }

    private var limitsOfNTLM: String {
        guard status == 401, !hasSessionThroughProxy, site.hasPrefix("http://"), case .named(let proxy) = params.proxy,
            !proxy.url.lowercased().hasPrefix("socks")
        else { return "" }
        return ", and https where a proxy is in between"
    }

    private var isEncrypted: Bool {
        if status == 401 { return site.hasPrefix("https://") }
        guard case .named(let proxy) = params.proxy else { return false }
        return proxy.url.lowercased().hasPrefix("https://")
    }

    private static func values(of name: String, in result: JSON) -> [String] {
        (result["headers"]?.elements ?? []).compactMap { field in
            guard field.elements?.first?.string?.lowercased() == name.lowercased() else { return nil }
            return field.elements?.last?.string
        }
    }

    private static func host(_ origin: String) -> String {
        let place = origin.firstRange(of: "://").map { origin[$0.upperBound...] } ?? origin[...]
        guard let colon = place.lastIndex(of: ":"), !place[colon...].contains("]") else { return String(place) }
        return String(place[..<colon])
    }

    private static func proxyHost(_ params: FetchRunParams) -> String {
        guard case .named(let proxy) = params.proxy else { return "the proxy's host" }
        return "\"\(host(DisplayURL.origin(proxy.url)))\""
    }
}

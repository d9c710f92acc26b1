import JSONText
import WatchwordProtocol

/// Explains a response with status 401 or 407 to a fetch without an accepted login: the schemes that were offered, and what
/// each of them requires. The explanation is derived from the response and the command alone. It names required entries of the
/// configuration even if they exist, because the configuration is unknown here.
struct LoginDiagnostic {
    private let status: Int
    private let site: String
    private let host: String
    private let schemes: [String]
    /// The scheme of a login that was answered without a challenge.
    private let sentScheme: String?
    /// The broker's reasons why nobody was asked, by scheme in lower case.
    private let reasons: [String: Unanswered.Reason]
    /// Whether the proxy uses a separate server connection for each client connection (`Proxy-Support`, RFC 4559 section 6).
    private let hasSessionThroughProxy: Bool
    private let params: FetchRunParams

    /// Returns `nil` for any other response.
    init?(_ result: JSON, _ params: FetchRunParams) {
        status = result["status"]?.integer ?? 0
        guard status == 401 || status == 407 else { return nil }
        let accepted = result[status == 401 ? "auth" : "proxyAuth"]
        guard accepted == nil || accepted == .null else { return nil }
        self.params = params
        let field = status == 401 ? "WWW-Authenticate" : "Proxy-Authenticate"
        schemes = OfferedSchemes.names(in: Self.values(of: field, in: result))
        let unanswered = result[status == 401 ? "unanswered" : "proxyUnanswered"]?.elements ?? []
        reasons = unanswered.reduce(into: [:]) { reasons, entry in
            let reason = entry["reason"]?.string.flatMap(Unanswered.Reason.init)
            reasons[entry["scheme"]?.string?.lowercased() ?? ""] = reason
        }
        sentScheme = unanswered.first { $0["reason"]?.string == Unanswered.Reason.noChallenge.rawValue }
            .flatMap { $0["scheme"]?.string?.shortened }
        hasSessionThroughProxy = Self.values(of: "Proxy-Support", in: result).contains {
            $0.lowercased() == "session-based-authentication"
        }
        site = DisplayURL.origin(result["url"]?.string ?? "")
        host = status == 401 ? "\"\(Self.host(site))\"" : Self.proxyHost(params)
    }

    /// Whether the command requests a login. With status 407, this includes a login for the server, which cannot be sent before
    /// the proxy has accepted one.
    var wasAskedFor: Bool {
        if params.credential != nil || params.userInfo != nil || params.methods != nil { return true }
        guard status == 407, case .named(let proxy) = params.proxy else { return false }
        return proxy.credential != nil || proxy.userInfo != nil
    }

    /// The message for the user; `nil` if no scheme was offered and no login requested or sent.
    var text: String? {
        if let sentScheme {
            return
                "\(subject) without a challenge, although there is a login (\(sentScheme)), so nobody was asked for another"
                + " one; if the login is wrong, run \"watchword credentials forget\""
        }
        guard !schemes.isEmpty else {
            return wasAskedFor ? "\(subject) and offered no login scheme" : nil
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
        let sentences = named.map { "\($0.schemes.joined(separator: ", ")): \($0.reason)" }
        let offers = "(offered: \(schemes.joined(separator: ", ")))"
        return "\(subject) and accepted no login \(offers); \(sentences.joined(separator: "; "))"
    }

    /// Whether this response is from the server or proxy that sent `challenge`.
    func isAnswer(to challenge: JSON) -> Bool {
        let isProxy = SpaceText.isProxy(challenge)
        return status == 407 ? isProxy : !isProxy && SpaceText.site(challenge) == site
    }

    /// The sender and status of the response. For status 407 it contains no host, because either the proxy or a server behind it
    /// may have sent the response.
    private var subject: String {
        status == 401 ? "\(site) returned status 401" : "a server or proxy returned status 407"
    }

    private func reason(_ scheme: String) -> String {
        let method = AuthenticationMethod(scheme: scheme)
        if status == 401, let methods = params.methods, !methods.contains(method) {
            return "not selected by the command"
        }
        switch method {
        case .negotiate:
            return "\(needs("negotiate")), and an accepted Kerberos ticket (kinit)\(limitsOfTickets)"
        case .ntlm: return "\(needs("ntlm"))\(limitsOfNTLM)"
        case _
        where reasons[scheme.lowercased()] == .noRespondent && [.httpBasic, .httpDigest, .bearer].contains(method):
            return "there is no \(method == .bearer ? "token" : "login") for it, and nobody could be asked"
        case .bearer where reasons[scheme.lowercased()].map({ $0 == .needsTLS }) ?? !isEncrypted:
            return "needs https, or a \(status == 401 ? "server" : "proxy") on this machine"
        case .httpBasic, .httpDigest, .bearer:
            return "perhaps excluded by schemes.order of the configuration, or a malformed challenge"
        case .other, .clientCertificate, .serverTrust: return "not supported here (an agent may support it)"
        }
    }

    private func needs(_ key: String) -> String { "needs \(host) in schemes.\(key) of the configuration" }

    /// The other conditions for a Kerberos ticket. A user in the command excludes tickets for the server in the URL, but not for
    /// another server after a redirect.
    private var limitsOfTickets: String {
        var text = ""
        if status == 401, params.maxRedirects == 0, params.credential != nil || params.userInfo != nil {
            text += ", and a command without a user or token"
        }
        if case .named = params.proxy { text += ", and no proxy from the command line" }
        return text
    }

    private var limitsOfNTLM: String {
        guard status == 401, !hasSessionThroughProxy, site.hasPrefix("http://"), case .named(let proxy) = params.proxy,
            !proxy.url.lowercased().hasPrefix("socks")
        else { return "" }
        return ", and https if a proxy is used"
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

/// The names of the schemes in authentication fields (RFC 9110 section 11.6.1), for display only. The broker parses the
/// complete fields and decides which scheme is used.
enum OfferedSchemes {
    private static let longestList = 8

    /// Returns each name once, in the server's order.
    static func names(in fields: [String]) -> [String] {
        var names: [String] = []
        for element in fields.flatMap(elements) {
            guard let name = name(in: element), names.count < longestList else { continue }
            if !names.contains(where: { $0.lowercased() == name.lowercased() }) { names.append(name) }
        }
        return names
    }

    /// Splits at the commas outside quoted strings.
    private static func elements(of field: String) -> [[UInt8]] {
        var (elements, isQuoted, isEscaped) = ([[UInt8]]([[]]), false, false)
        for byte in field.utf8 {
            if byte == UInt8(ascii: "\""), !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && !isEscaped && byte == UInt8(ascii: "\\")
            if byte == UInt8(ascii: ","), !isQuoted {
                elements.append([])
            } else {
                elements[elements.count - 1].append(byte)
            }
        }
        return elements
    }

    /// Returns the token at the start of `element`, which is a scheme unless `=` follows.
    private static func name(in element: [UInt8]) -> String? {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let text = element.drop(while: isBlank)
        let token = text.prefix { $0.isTokenCharacter }
        let rest = text.dropFirst(token.count)
        guard !token.isEmpty, rest.first.map(isBlank) ?? true, rest.first(where: { !isBlank($0) }) != UInt8(ascii: "=")
        else { return nil }
        return String(decoding: token, as: UTF8.self).shortened
    }
}

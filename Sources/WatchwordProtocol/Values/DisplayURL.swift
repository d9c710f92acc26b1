/// Hosts, sites and URLs for display: in prompts, lists, the audit log and errors.
///
/// A host is never shortened, because its end shows its owner. Only path and query are shortened, in their middle.
public enum DisplayURL {
    /// The most characters of path and query that are shown.
    public static let pathLimit = 80
    /// The length of the longest valid host (253 characters, RFC 1035 section 2.3.4) with its port.
    public static let hostLimit = 259
    /// The length up to which a person can read a host at a glance.
    static let hostAtAGlance = 60
    /// The most characters that `end(ofHost:)` returns, unless two labels are already longer.
    private static let hostEndLimit = 40

    /// Returns the complete host; only the end of a text that is too long to be a host.
    public static func host(_ text: String) -> String {  // guard: display-host-end
        let scalars = text.unicodeScalars
        let isCut = scalars.count > hostLimit
        return (isCut ? "…" : "") + DisplayText.escaped(isCut ? scalars.suffix(hostLimit) : scalars[...])
    }

    /// Returns scheme and host, and the port unless it is the default of the scheme.
    public static func site(scheme: String, host: String, port: Int, alwaysWithPort: Bool = false) -> String {
        let isUsual = (scheme, port) == ("http", 80) || (scheme, port) == ("https", 443)
        return "\(scheme.shortened)://\(self.host(host))\(isUsual && !alwaysWithPort ? "" : ":\(port)")"
    }

    /// Returns the URL without user and password, with its complete host. A text that is not a URL with a host is shortened.
    public static func text(_ url: String) -> String {
        guard let (scheme, authority, rest) = split(url) else { return url.shortened }
        return "\(scheme.shortened)://\(host(String(authority)))" + String(rest).shortened(to: pathLimit)
    }

    /// Returns scheme, host and port of the URL.
    public static func origin(_ url: String) -> String {
        guard let (scheme, authority, _) = split(url) else { return url.shortened }
        return "\(scheme.shortened)://\(host(String(authority)))"
    }

    /// Returns the last labels of a long host, for a line of their own; `nil` for a host that can be read at a glance.
    public static func end(ofHost text: String) -> String? {
        guard text.unicodeScalars.count > hostAtAGlance else { return nil }
        let labels = text.split(separator: ".").suffix(3)
        guard labels.count > 2 else { return host(labels.joined(separator: ".")) }
        let three = labels.joined(separator: ".")
        return host(three.count > hostEndLimit ? labels.dropFirst().joined(separator: ".") : three)
    }

    /// Splits a URL. A backslash also ends the authority, because some programs treat it as a slash.
    private static func split(_ url: String) -> (scheme: String, authority: Substring, rest: Substring)? {
        guard let separator = url.firstRange(of: "://") else { return nil }
        let place = url[separator.upperBound...]
        let end = place.firstIndex { "/?#\\".contains($0) } ?? place.endIndex
        let authority = place[..<end]
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        return (String(url[..<separator.lowerBound]), host, place[end...])
    }
}

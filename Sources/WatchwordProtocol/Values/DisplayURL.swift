/// Hosts, sites and URLs for a person: in a question, a list, the audit log or an error.
///
/// A host is always whole, because its end says whose it is. Only path and query are shortened, in their middle.
public enum DisplayURL {
    /// Characters of path and query that are shown.
    public static let pathLimit = 80
    /// Characters of the longest host (253, RFC 1035 section 2.3.4) with its port. What is longer names no host.
    public static let hostLimit = 259
    /// Characters of a host that a person takes in at a glance.
    static let hostAtAGlance = 60
    /// Characters that `end(ofHost:)` has at most, where two labels are not longer already.
    private static let hostEndLimit = 40

    /// The host, whole; of what is too long for one, the end.
    public static func host(_ text: String) -> String {
        let scalars = text.unicodeScalars
        let isCut = scalars.count > hostLimit
        return (isCut ? "…" : "") + DisplayText.escaped(isCut ? scalars.suffix(hostLimit) : scalars[...])
    }

    /// Scheme and host, and the port where it is not the scheme's own.
    public static func site(scheme: String, host: String, port: Int, alwaysWithPort: Bool = false) -> String {
        let isUsual = (scheme, port) == ("http", 80) || (scheme, port) == ("https", 443)
        return "\(scheme.shortened)://\(self.host(host))\(isUsual && !alwaysWithPort ? "" : ":\(port)")"
    }

    /// The URL without user and password, its host whole. A text that is no URL with a host is shown as `shortened`.
    public static func text(_ url: String) -> String {
        guard let (scheme, authority, rest) = split(url) else { return url.shortened }
        return "\(scheme.shortened)://\(host(String(authority)))" + String(rest).shortened(to: pathLimit)
    }

    /// Scheme, host and port of the URL.
    public static func origin(_ url: String) -> String {
        guard let (scheme, authority, _) = split(url) else { return url.shortened }
        return "\(scheme.shortened)://\(host(String(authority)))"
    }

    /// The labels that end a long host, for a line of their own; `nil` where the host can be taken in at a glance.
    public static func end(ofHost text: String) -> String? {
        guard text.unicodeScalars.count > hostAtAGlance else { return nil }
        let labels = text.split(separator: ".").suffix(3)
        guard labels.count > 2 else { return host(labels.joined(separator: ".")) }
        let three = labels.joined(separator: ".")
        return host(three.count > hostEndLimit ? labels.dropFirst().joined(separator: ".") : three)
    }

    /// A backslash ends the authority too: some programs read it as a slash.
    private static func split(_ url: String) -> (scheme: String, authority: Substring, rest: Substring)? {
        guard let separator = url.firstRange(of: "://") else { return nil }
        let place = url[separator.upperBound...]
        let end = place.firstIndex { "/?#\\".contains($0) } ?? place.endIndex
        let authority = place[..<end]
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        return (String(url[..<separator.lowerBound]), host, place[end...])
    }
}

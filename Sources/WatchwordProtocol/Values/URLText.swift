internal import JSONText

/// Separates the user information from a URL before the URL becomes a `String`.
public enum URLText {
    /// Returns the URL without user information and its `@`, and the user information, if any.
    ///
    /// The text is not validated: a text that is not a URL is returned unchanged, for the parser to refuse.
    public static func split(_ text: Secret) -> (url: String, userInfo: Secret?) {
        text.withUnsafeBytes { bytes in
            guard let authority = authority(of: bytes),
                let at = bytes[authority].lastIndex(of: UInt8(ascii: "@"))
            else { return (String(decoding: bytes, as: UTF8.self), nil) }
            let userInfo = UnsafeRawBufferPointer(rebasing: bytes[authority.lowerBound..<at])
            let url =
                String(decoding: bytes[..<authority.lowerBound], as: UTF8.self)
                + String(decoding: bytes[(at + 1)...], as: UTF8.self)
            return (url, Secret(copying: userInfo))
        }
    }

    /// Returns the authority, between `//` and the next `/`, `?` or `#` (RFC 3986 section 3.2).
    private static func authority(of bytes: UnsafeRawBufferPointer) -> Range<Int>? {
        let slash = UInt8(ascii: "/")
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon + 2 < bytes.count,
            bytes[colon + 1] == slash, bytes[colon + 2] == slash
        else { return nil }
        let start = colon + 3
        let end = bytes[start...].firstIndex { $0 == slash || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        return start..<(end ?? bytes.count)
    }

    /// The inverse of `split`, as a JSON string. May contain a password: serialize it with `JSON.write(_:)`.
    static func joined(_ url: String, _ userInfo: Secret?) -> JSON {
        guard let userInfo, let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://") else {
            return .string(url)
        }
        let start = url.index(colon, offsetBy: 3)
        let whole = Secret(joining: [.text(String(url[..<start])), .secret(userInfo), .text("@\(url[start...])")])
        return whole.withUnsafeBytes { JSON.string(secret: $0) } ?? .string(url)
    }
}

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

/// URLs of PAC files.
public enum ScriptURL {
    /// Whether the text is such a URL, without user and password.
    public static func isValid(_ text: String) -> Bool {
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return false }
        if text.hasPrefix("file:///") { return !text.contains("%") }
        guard let authority = authority(text) else { return false }
        return !authority.isEmpty && !authority.contains { "?#@".contains($0) }
    }

    /// Returns the URL without its query, which may contain a token.
    public static func display(_ text: String) -> String {
        DisplayURL.text(String(text.prefix { !"?#".contains($0) }))
    }

    /// Whether others can change the file on its way.
    public static func isForgeable(_ text: String) -> Bool {
        guard text.hasPrefix("http://"), let authority = authority(text) else { return false }
        let end = authority.hasPrefix("[") ? authority.firstIndex(of: "]").map { authority.index(after: $0) } : nil
        return !Loopback.isLoopback(
            ExactText(String(authority[..<(end ?? authority.firstIndex(of: ":") ?? authority.endIndex)])))
    }

    private static func authority(_ text: String) -> Substring? {
        let scheme = ["http://", "https://"].first { text.hasPrefix($0) }
        return scheme.map { text.dropFirst($0.count).prefix { $0 != "/" } }
    }
}

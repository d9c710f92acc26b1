internal import WatchwordProtocol

/// A URL in a table `[oauth."URL"]`: https, or http on this machine, without user information, query and fragment.
struct OAuthURL {
    /// Scheme, host and port, in lower case and without the default port.
    let origin: String
    /// The path, as it was written.
    let path: String

    /// The URL without a slash at its end.
    var withoutTrailingSlash: String { origin + (path.hasSuffix("/") ? String(path.dropLast()) : path) }

    /// - Throws: `Refusal`. Its text does not quote the URL, which may contain a password.
    init(_ text: String) throws(Refusal) {
        guard text.utf8.count <= Limits.urlBytes else { throw Refusal("the URL is too long") }
        let lowercased = text.prefix(8).asciiLowercased
        guard let scheme = ["https://", "http://"].first(where: { lowercased.hasPrefix($0) }) else {
            throw Refusal("expected a URL that begins with https://; \(Self.form)")
        }
        let rest = text.dropFirst(scheme.count)
        guard rest.utf8.allSatisfy(Self.isURLCharacter) else {
            throw Refusal("the URL contains characters that must be percent-encoded; \(Self.form)")
        }
        guard !rest.contains(where: { "?#".contains($0) }) else {
            throw Refusal("remove the query or the fragment of the URL; \(Self.form)")
        }
        let authority = rest.prefix { $0 != "/" }
        guard !authority.contains("@") else {  // guard: oauth-url-user
            throw Refusal("remove the user name or the password, the text between // and @, and the @; \(Self.form)")
        }
        let host: String
        let port: Int?
        do throws(Refusal) {
            let parts = try HostPort(authority)
            guard let name = HostName.canonical(parts.host) else { throw Refusal("the URL has no valid host") }
            (host, port) = (name, parts.port)
        } catch {
            throw Refusal("\(error.text); \(Self.form)")
        }
        // guard: oauth-url-https
        guard scheme == "https://" || Self.isThisMachine(host) else {
            throw Refusal(
                "expected https://; http:// is only for 127.0.0.0/8, [::1] and localhost, because others can read and change "
                    + "it on its way")
        }
        path = String(rest.dropFirst(authority.count))
        origin = scheme + host + (port.flatMap { $0 == Self.defaultPort(scheme) ? nil : ":\($0)" } ?? "")
        try Self.check(path)
    }

    /// - Throws: `Refusal` for a path that servers do not all read alike.
    private static func check(_ path: String) throws(Refusal) {
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        guard segments.dropLast().allSatisfy({ !$0.isEmpty }) else {
            throw Refusal("remove the empty segment // from the path; \(form)")
        }
        for segment in segments {
            let pieces = segment.split(separator: "%", omittingEmptySubsequences: false)
            guard pieces.dropFirst().allSatisfy({ $0.count >= 2 && $0.prefix(2).allSatisfy(\.isHexDigit) }) else {
                throw Refusal("the path contains a % without two hexadecimal digits; \(form)")
            }
            if [".", ".."].contains(segment.asciiLowercased.replacing("%2e", with: ".")) {
                throw Refusal("remove the segments . and .. from the path; \(form)")
            }
        }
    }

    private static func defaultPort(_ scheme: String) -> Int { scheme == "https://" ? 443 : 80 }

    /// Narrower than `Loopback`: a name below `localhost` depends on the resolver.
    private static func isThisMachine(_ host: String) -> Bool {
        host == "localhost" || host == "[::1]" || (host.hasPrefix("127.") && HostName.isIPv4(host))
    }

    /// Whether the byte may occur in a URL (RFC 3986 section 2).
    static func isURLCharacter(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte) && !"\"<>\\^`{|}".utf8.contains(byte)
    }

    private static let form = "for example, write \"https://api.example/v1\""
}

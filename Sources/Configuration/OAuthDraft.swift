internal import WatchwordCore
internal import WatchwordProtocol

/// A table `[oauth."URL"]` that is being read: the rule, and the file with its secret.
struct OAuthDraft: TableTarget {
    var rule = OAuthRule(resource: "")
    var secretFile: String?

    static let options: [TableOption<OAuthDraft>] = [
        .text(
            "issuer", ValueType("a URL that begins with https://", example: "\"https://login.example\""), \.rule.issuer
        ) {
            _ = try OAuthURL($0)
            return $0
        },
        .text("client-id", ValueType("a client id", example: "\"watchword\""), \.rule.clientID) {
            let isValid = (1...Limits.oauthClientIDBytes).contains($0.utf8.count) && $0.utf8.allSatisfy(isVisible)
            return isValid ? $0 : nil
        },
        .text(secretKey, .homePath(example: "~/.config/watchword/client-secret"), \.secretFile) {
            Settings.isHomePath($0) ? $0 : nil
        },
        .strings(
            "scopes", ValueType("a list of scopes", example: "[\"read\", \"write\"]"), \.rule.scopes, texts: \.self,
            list: \.self
        ) { earlier, scope in
            guard !scope.isEmpty, scope.utf8.allSatisfy(isScopeCharacter) else {
                throw Refusal(
                    "a scope is not empty and has no spaces, quotation marks and backslashes; write one string for each "
                        + "scope, for example: scopes = [\"read\", \"write\"]")
            }
            guard !earlier.contains(scope) else { throw Refusal("a scope is listed twice; remove one") }
            return scope
        },
        .choice("flow", \.rule.flow, example: .device),
        .count("redirect-port", 1024...65_535, example: 7777, \.rule.redirectPort),
        .text(
            "resource", ValueType("an absolute URI without a fragment", example: "\"https://api.example/v1\""),
            \.rule.resourceIndicator
        ) { isAbsoluteURI($0) ? $0 : nil },
        .boolean("register", \.rule.registersClient),
        .boolean("dpop", \.rule.usesDPoP),
    ]

    /// The option with the path of the file that contains the client's secret.
    static let secretKey = "client-secret-file"

    /// Whether the byte is a VSCHAR (RFC 6749 appendix A).
    static func isVisible(_ byte: UInt8) -> Bool { (0x20...0x7E).contains(byte) }

    /// Whether the byte may occur in a `scope-token` (RFC 6749 section 3.3).
    private static func isScopeCharacter(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    /// Whether the text is an absolute URI (RFC 3986 section 4.3).
    private static func isAbsoluteURI(_ text: String) -> Bool {
        let scheme = text.prefix { $0 != ":" }
        guard let first = scheme.utf8.first, (0x61...0x7A).contains(first | 0x20),
            scheme.utf8.allSatisfy({ $0.isTokenCharacter && !"!#$%&'*^_`|~".utf8.contains($0) })
        else { return false }
        let rest = text.dropFirst(scheme.count + 1)
        return !rest.isEmpty && text.utf8.count <= Limits.urlBytes
            && rest.utf8.allSatisfy { OAuthURL.isURLCharacter($0) && $0 != UInt8(ascii: "#") }
    }
}

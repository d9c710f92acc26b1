internal import WatchwordCore
internal import WatchwordProtocol

extension OAuthOption {
    /// All options, in the order of the manual page.
    static let all: [OAuthOption] = [
        .text(
            "issuer", "a URL that begins with https://", example: "https://login.example",
            "Specifies the issuer identifier of the authorization server (RFC 8414), exactly as the server writes it, also "
                + "with or without a slash at its end. With flow = \"registry\" it is the origin of the token service. "
                + "Without this option the server at the URL of the table names the authorization server (RFC 9728)."
        ) { option, text, draft throws(Refusal) in
            _ = try OAuthURL(text)
            draft.rule.issuer = text
        },
        .text(
            "client-id", "a client id", example: "watchword",
            "Specifies the id under which you have registered Watchword at the authorization server."
        ) { option, text, draft throws(Refusal) in
            guard (1...Limits.oauthClientIDBytes).contains(text.utf8.count), text.utf8.allSatisfy(isVisible) else {
                throw option.invalid
            }
            draft.rule.clientID = text
        },
        .text(
            "client-secret-file", "an absolute path or a path that begins with \"~/\"",
            example: "~/.config/watchword/client-secret",
            "Specifies the file that contains the secret of a confidential client, in one line. It must be a regular file "
                + "of you or root to which group and others have no access (mode 0600), of at most 4 KiB. It is read "
                + "when the broker starts and on SIGHUP. If it cannot be used, the broker reports the reason and gets no "
                + "tokens for the URLs of this table."
        ) { option, text, draft throws(Refusal) in
            guard text.hasPrefix("/") || text.hasPrefix("~/"), !text.utf8.contains(0) else { throw option.invalid }
            draft.secretFile = text
        },
        OAuthOption(
            "scopes", "a list of scopes", example: "[\"read\", \"write\"]", defaultText: "[]",
            "Specifies the scopes that are requested. If the list is empty, they are those that the server names in its "
                + "challenge or its metadata."
        ) { option, value, draft throws(Refusal) in
            guard case .strings(let texts) = value else { throw option.unexpected(value.kindText) }
            let scopes = texts.map(\.text)
            guard scopes.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isScopeCharacter) }) else {
                throw Refusal(
                    "a scope is not empty and has no spaces, quotation marks and backslashes; write one string for each "
                        + "scope, for example: scopes = \(option.example)")
            }
            guard Set(scopes).count == scopes.count else { throw Refusal("a scope is listed twice; remove one") }
            draft.rule.scopes = scopes
        },
        .text(
            "flow", flows, example: OAuthRule.Flow.device.rawValue,
            "Specifies how a token is obtained: with \"browser\" you log in in the browser of this desktop, and with "
                + "\"device\" you enter a code in the browser of any device. With \"client-credentials\" the broker "
                + "logs in as the client, with the secret in client-secret-file, without a question. \"registry\" is for "
                + "the token services of container registries. By default it is \"browser\", or \"device\" if the "
                + "authorization server offers only that."
        ) { option, text, draft throws(Refusal) in
            guard let flow = OAuthRule.Flow(rawValue: text) else { throw option.unexpected("\"\(text.shortened)\"") }
            draft.rule.flow = flow
        },
        OAuthOption(
            "redirect-port", "a whole number from \(ports.lowerBound) to \(ports.upperBound)", example: "7777",
            "Specifies the port of 127.0.0.1 to which the browser returns after the login. It is for authorization "
                + "servers that allow only registered redirect URIs; register http://127.0.0.1:PORT/callback there. By "
                + "default any free port is used."
        ) { option, value, draft throws(Refusal) in
            guard case .integer(let number) = value else { throw option.unexpected(value.kindText) }
            guard ports.contains(number) else { throw option.unexpected("\(number)") }
            draft.rule.redirectPort = Int(number)
        },
        .text(
            "resource", "an absolute URI without a fragment", example: "https://api.example/v1",
            "Specifies the resource for which tokens are requested (RFC 8707). The default is that of the metadata of the "
                + "server, or none."
        ) { option, text, draft throws(Refusal) in
            guard isAbsoluteURI(text) else { throw option.invalid }
            draft.rule.resourceIndicator = text
        },
        .flag(
            "register", \.registersClient,
            "Specifies whether Watchword may register itself as a client at the authorization server (RFC 7591), in place "
                + "of client-id."),
        .flag(
            "dpop", \.usesDPoP,
            "Specifies whether tokens are bound to a key of the broker (DPoP, RFC 9449) if the authorization server offers "
                + "it. Such a token is useless for anyone else."),
    ]

    private static let ports: ClosedRange<Int64> = 1024...65_535

    private static let flows = OAuthRule.Flow.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: " or ")

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

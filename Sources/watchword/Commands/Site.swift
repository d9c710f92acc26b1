import ArgumentParser
import JSONText
import WatchwordProtocol

/// The argument SITE: a URL, of which only scheme, host and port are used.
struct Site {
    let pattern: SpacePattern

    /// Parses the argument. Errors do not quote the text, because it may contain a misplaced password.
    init(_ text: String) throws {
        guard SecretArguments.taken.userInfos.isEmpty else {
            throw ValidationError(
                "SITE must not contain a user or a password; write it as https://host or https://host:port")
        }
        try self.init(url: text)
    }

    /// Parses a URL from which user and password were removed.
    init(url text: String) throws {
        guard let separator = text.firstRange(of: "://"),
            let scheme = ["http", "https"].first(where: { $0 == text[..<separator.lowerBound].lowercased() })
        else {
            throw ValidationError(
                "SITE must start with http:// or https://, as in https://intranet.example or http://127.0.0.1:8080")
        }
        let rest = text[separator.upperBound...]
        let authority = rest[..<(rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex)]
        do throws(Refusal) {
            let place = try HostPort(authority)
            guard HostName.canonical(place.host) != nil else {
                throw Refusal("write names in ASCII (punycode), addresses as 192.0.2.1 or [2001:db8::1]")
            }
            let port = place.port ?? (scheme == "https" ? 443 : 80)
            pattern = SpacePattern(scheme: scheme, host: ExactText(place.host), port: port)
        } catch {
            throw ValidationError("SITE has no valid host: \(error.text)")
        }
    }

    /// The site for display, without a path.
    var text: String { SpaceText.site(["protectionSpace": pattern.json]) }

    /// The site as an origin for `session/clear`.
    var origin: String { "\(pattern.scheme)://\(pattern.host):\(pattern.port)" }
}

/// Descriptions of a `protectionSpace` in messages of the broker, safe for a terminal.
enum SpaceText {
    /// Returns scheme, host and port as in a URL; for a proxy, preceded by "proxy" and always with the port.
    static func site(_ params: JSON) -> String {
        let space = params["protectionSpace"]
        let (scheme, host) = (space?["protocol"]?.string ?? "", space?["host"]?.string ?? "")
        let port = space?["port"]?.integer ?? 0
        if isProxy(params) {
            let scheme = scheme == ProxyType.socks.rawValue ? "socks5h" : scheme
            return "proxy \(DisplayURL.site(scheme: scheme, host: host, port: port, alwaysWithPort: true))"
        }
        return DisplayURL.site(scheme: scheme, host: host, port: port)
    }

    /// Returns a line with the end of a host that is too long to read at a glance: its beginning may look like another name.
    static func longHostNote(_ params: JSON) -> String? {
        let host = params["protectionSpace"]?["host"]?.string ?? ""
        return DisplayURL.end(ofHost: host).map { "  The host name is long and ends in \($0)" }
    }

    static func isProxy(_ params: JSON) -> Bool { params["protectionSpace"]?["isProxy"]?.boolean == true }

    /// Returns the scheme; `nil` if there is none.
    static func scheme(_ params: JSON) -> String? {
        params["protectionSpace"]?["authenticationMethod"]?.string.map { schemes[$0] ?? $0.shortened }
    }

    /// The names of the methods of the protocol.
    static let schemes = [
        "httpBasic": "Basic", "httpDigest": "Digest", "bearer": "Bearer", "ntlm": "NTLM", "negotiate": "Negotiate",
    ]

    /// Returns a note about a weak challenge (RFC 7617 section 2, RFC 2069); `nil` for other challenges.
    static func weaknessNote(_ params: JSON) -> String? {
        let space = params["protectionSpace"]
        let offer = params["offers"]?.elements?.first {
            $0["authenticationMethod"]?.string == space?["authenticationMethod"]?.string
                && $0["realm"]?.string == space?["realm"]?.string
        }
        let weaknesses = (offer?["weak"]?.elements ?? []).compactMap { $0.string.flatMap(Offer.Weakness.init) }
        let notes = weaknesses.compactMap { weakness -> String? in
            switch weakness {
            case .noRealm: "The server does not say which area the login is for (no realm)."
            case .noQop: "The server uses an old form of Digest (RFC 2069), whose responses can be replayed."
            case .unquotedRealm: nil
            }
        }
        return notes.first.map { "\($0) Saved logins are not used for it." }
    }

    /// Returns the realm; `nil` if there is none.
    static func realm(_ params: JSON) -> String? { params["protectionSpace"]?["realm"]?.string?.shortened }

    /// Returns the realm that the site had here before; `nil` if this one is not new.
    static func formerRealm(_ params: JSON) -> String? { params["formerRealm"]?.string?.shortened }
}

import JSONText
import WatchwordProtocol

/// The words for a `protectionSpace` in messages of the broker, safe for a terminal.
enum SpaceText {
    /// Scheme, host and port, as in a URL; a proxy is called one, and shows its port always.
    static func site(_ params: JSON) -> String {
        let space = params["protectionSpace"]
        let (scheme, host) = (space?["protocol"]?.string ?? "", space?["host"]?.string ?? "")
        let port = space?["port"]?.integer ?? 0
        if isProxy(params) {
            let scheme = scheme == ProxyType.socks.rawValue ? "socks5h" : scheme
            return "The proxy \(DisplayURL.site(scheme: scheme, host: host, port: port, alwaysWithPort: true))"
        }
        return DisplayURL.site(scheme: scheme, host: host, port: port)
    }

    /// A line about a host that is too long to be taken in at a glance: other names may stand at its beginning.
    static func longHostNote(_ params: JSON) -> String? {
        let host = params["protectionSpace"]?["host"]?.string ?? ""
        return DisplayURL.end(ofHost: host).map { "  The host has a long name, which ends in \($0)" }
    }

    static func isProxy(_ params: JSON) -> Bool { params["protectionSpace"]?["isProxy"]?.boolean == true }

    /// `nil` when no scheme is named.
    static func scheme(_ params: JSON) -> String? {
        switch params["protectionSpace"]?["authenticationMethod"]?.string {
        case "httpBasic": "Basic"
        case "httpDigest": "Digest"
        case "bearer": "Bearer"
        case "ntlm": "NTLM"
        case "negotiate": "Negotiate"
        case let other: other?.shortened
        }
    }

    /// A sentence about a weak challenge (RFC 7617 section 2, RFC 2069); `nil` for any other.
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
            case .noQop: "The server uses an old form of Digest (RFC 2069), whose proofs can be replayed."
            case .unquotedRealm: nil
            }
        }
        return notes.first.map { "\($0) Saved logins are not used for it." }
    }

    /// `nil` when no realm is named.
    static func realm(_ params: JSON) -> String? { params["protectionSpace"]?["realm"]?.string?.shortened }
}

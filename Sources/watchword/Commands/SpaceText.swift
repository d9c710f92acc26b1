import JSONText
import WatchwordProtocol

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
        switch params["protectionSpace"]?["authenticationMethod"]?.string {
        case "httpBasic": "Basic"
        case "httpDigest": "Digest"
        case "bearer": "Bearer"
        case "ntlm": "NTLM"
        case "negotiate": "Negotiate"
        case let other: other?.shortened
        }
    }

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

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

    /// `nil` when no realm is named.
    static func realm(_ params: JSON) -> String? { params["protectionSpace"]?["realm"]?.string?.shortened }
}

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

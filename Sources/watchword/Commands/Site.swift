import ArgumentParser
import JSONText
import WatchwordProtocol

/// The argument SITE: a URL of which scheme, host and port count.
struct Site {
    let pattern: SpacePattern

    /// What is wrong is said without quoting the text: a password may stand in the wrong place.
    init(_ text: String) throws {
        guard SecretArguments.taken.userInfos.isEmpty else {
            throw ValidationError("SITE takes no user and no password. Write it as https://host or https://host:port.")
        }
        try self.init(url: text)
    }

    /// From a URL that holds no user and no password any more.
    init(url text: String) throws {
        guard let separator = text.firstRange(of: "://"),
            let scheme = ["http", "https"].first(where: { $0 == text[..<separator.lowerBound].lowercased() })
        else {
            throw ValidationError(
                "SITE starts with http:// or https://, as in https://intranet.example or http://127.0.0.1:8080.")
        }
        let rest = text[separator.upperBound...]
        let authority = rest[..<(rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex)]
        do throws(Refusal) {
            let place = try HostPort(authority)
            guard HostName.canonical(place.host) != nil else {
                throw Refusal("Names are in ASCII (punycode), addresses as 192.0.2.1 or [2001:db8::1].")
            }
            let port = place.port ?? (scheme == "https" ? 443 : 80)
            pattern = SpacePattern(scheme: scheme, host: ExactText(place.host), port: port)
        } catch {
            throw ValidationError("SITE names no host. \(error.text)")
        }
    }

    /// As in a URL, without a path.
    var text: String { SpaceText.site(["protectionSpace": pattern.json]) }

    /// The same for a call.
    var origin: String { "\(pattern.scheme)://\(pattern.host):\(pattern.port)" }
}

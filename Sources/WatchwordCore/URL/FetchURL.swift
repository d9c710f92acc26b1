public import WatchwordProtocol

/// An absolute `http` or `https` URL in the one form that the whole broker uses: parsed once, canonical, without user
/// information and without a fragment.
///
/// What is sent, what a protection space is made of, and what an error shows all come from this value, so that no two
/// parsers can disagree on where a credential goes.
public struct FetchURL: Sendable, Hashable {
    public let origin: Origin
    /// Starts with `/`; dot segments are resolved (RFC 3986 section 5.2.4).
    public let path: ExactText
    /// What follows `?`, without it; `nil` when there is none.
    public let query: String?

    init(origin: Origin, path: ExactText, query: String?) {
        self.origin = origin
        self.path = path
        self.query = query
    }

    /// What stands in the request line in origin form (RFC 9112 section 3.2.1).
    public var requestTarget: String { query.map { "\(path)?\($0)" } ?? path.string }

    /// The whole URL. The port is left out when it is the scheme's own.
    public var text: String { origin.text + requestTarget }
}

/// Where a URL leads: scheme, host and port (RFC 6454 section 4). Credentials never cross from one origin to another.
public struct Origin: Sendable, Hashable {
    public enum Scheme: String, Sendable {
        case http, https

        public var defaultPort: Int { self == .https ? 443 : 80 }
    }

    public let scheme: Scheme
    /// A registered name or an address, in small letters; an IPv6 address with its brackets.
    public let host: ExactText
    /// From 1 to 65,535.
    public let port: Int

    init(scheme: Scheme, host: ExactText, port: Int) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// As in a URL: the port is left out when it is the scheme's own.
    public var text: String {
        port == scheme.defaultPort ? "\(scheme.rawValue)://\(host)" : "\(scheme.rawValue)://\(host):\(port)"
    }
}

public import WatchwordProtocol

/// The address and the protocol of a proxy.
public struct ProxyEndpoint: Sendable, Hashable {
    public let type: ProxyType
    /// A name or an address in lower case; an IPv6 address with its brackets.
    public let host: ExactText
    public let port: Int

    init(type: ProxyType, host: ExactText, port: Int) {
        self.type = type
        self.host = host
        self.port = port
    }

    /// Parses `http://`, `https://` or `socks5h://` with a host and a port. `socks5://` and `socks://` mean the same as
    /// `socks5h://`: the proxy always resolves the names. A path is ignored.
    /// - Throws: `FetchFailure` of kind `badURL`.
    public init(_ text: String) throws(FetchFailure) {
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { throw .badProxy }
        let type: ProxyType
        switch text[..<colon].asciiLowercased {
        case "http": type = .http
        case "https": type = .https
        case "socks5", "socks5h", "socks": type = .socks
        default: throw .badProxy
        }
        let rest = text[text.index(colon, offsetBy: 3)...].prefix { $0 != "/" }
        guard !rest.contains(where: { "?#".contains($0) }) else { throw .badProxy }
        let place = try Origin(scheme: .http, authority: String(rest))
        let namesPort = rest.last?.isNumber == true && rest.hasSuffix(":\(place.port)")
        self.init(type: type, host: place.host, port: namesPort ? place.port : type.defaultPort)
    }

    public var text: String { "\(type == .socks ? "socks5h" : type.rawValue)://\(host):\(port)" }

    var kind: ProxyRequest.Kind {
        switch type {
        case .http: .http
        case .https: .https
        case .socks: .socks5h
        }
    }
}

extension FetchFailure {
    fileprivate static let badProxy = FetchFailure(
        .badURL, "invalid proxy URL; use http://host:port, https://host:port or socks5h://host:port")
}

/// The proxy of one hop and the restrictions on its use.
struct ProxyRoute: Sendable, Equatable {
    var endpoint: ProxyEndpoint
    /// Whether the fetch, rather than the configuration, names the proxy. Stored credentials are then sent neither to
    /// nor through the proxy (SEMANTICS rule 24).
    var isNamedByFetch: Bool
    /// Whether someone who forged the PAC file on its way could have chosen the proxy.
    var isForgeable = false
}

/// The address by which a person names a server or a proxy: both, if one address serves as both.
public struct SiteAddress: Sendable, Equatable {
    private let scheme: String
    private let host: ExactText
    private let port: Int
    /// The origin; `nil` for a SOCKS proxy.
    public let origin: Origin?

    /// Parses an http or https URL, or the URL of a SOCKS proxy. A path is ignored.
    /// - Throws: `FetchFailure` of kind `badURL`.
    public init(_ text: String) throws(FetchFailure) {
        if text.asciiLowercased.hasPrefix("socks") {
            let proxy = try ProxyEndpoint(text)
            (scheme, host, port, origin) = (ProxyType.socks.rawValue, proxy.host, proxy.port, nil)
        } else {
            let origin = try FetchURL(text).origin
            (scheme, host, port, self.origin) = (origin.scheme.rawValue, origin.host, origin.port, origin)
        }
    }

    public var text: String { origin?.text ?? "socks5h://\(host):\(port)" }

    /// Whether these spaces are at this address.
    func contains(_ pattern: SpacePattern) -> Bool {
        pattern.scheme == scheme && pattern.host == host && pattern.port == port
    }
}

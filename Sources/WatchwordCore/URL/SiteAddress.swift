internal import WatchwordProtocol

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

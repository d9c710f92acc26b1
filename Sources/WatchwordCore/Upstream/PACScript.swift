internal import WatchwordProtocol

/// The contents of a PAC file.
public struct PACScript: Sendable, Equatable {
    /// The largest file, in bytes.
    public static let largestSize = 1 << 20

    public let bytes: [UInt8]

    /// - Throws: `UpstreamFailure` if the file is too large.
    public init(_ bytes: [UInt8]) throws(UpstreamFailure) {
        guard bytes.count <= Self.largestSize else {
            throw UpstreamFailure("the PAC file is larger than \(Self.largestSize) bytes")
        }
        self.bytes = bytes
    }

    /// Parses the result of `FindProxyForURL`, such as `PROXY a:3128; DIRECT`. Parts that are not supported are ignored.
    /// - Throws: `UpstreamFailure` if no part is supported.
    public static func upstreams(_ result: String) throws(UpstreamFailure) -> [Upstream] {
        let upstreams = result.split(separator: ";").prefix(largestCount).compactMap(upstream)
        guard !upstreams.isEmpty else {  // guard: pac-empty-result
            throw UpstreamFailure("the PAC file returned \"\(result.shortened)\", which names no supported proxy")
        }
        return upstreams
    }

    private static let largestCount = 16

    /// The scheme and the default port for each keyword, as in browsers; SOCKS means version 5.
    private static let protocols = [
        "PROXY": ("http", 80), "HTTP": ("http", 80), "HTTPS": ("https", 443), "SOCKS": ("socks5h", 1080),
        "SOCKS5": ("socks5h", 1080),
    ]

    private static func upstream(_ part: Substring) -> Upstream? {
        let words = part.split(whereSeparator: \.isWhitespace)
        guard let keyword = words.first?.uppercased() else { return nil }
        if keyword == "DIRECT" { return words.count == 1 ? .direct : nil }
        guard let (scheme, port) = protocols[keyword], words.count == 2 else { return nil }
        let place = words[1]
        let hasPort = place.contains(":") && place.last?.isNumber == true
        guard !place.contains(where: { "/@".contains($0) }),
            let endpoint = try? ProxyEndpoint("\(scheme)://\(place)\(hasPort ? "" : ":\(port)")")
        else { return nil }
        return .proxy(endpoint)
    }
}

internal import WatchwordProtocol

/// The contents of a PAC file.
public struct PACScript: Sendable, Equatable {
    /// The largest file, in bytes.
    public static let largestSize = 1 << 20

    /// The script, in UTF-8.
    public let bytes: [UInt8]

    /// - Throws: `UpstreamFailure` if the file is too large.
    public init(_ bytes: [UInt8]) throws(UpstreamFailure) {
        guard bytes.count <= Self.largestSize else {
            throw UpstreamFailure("the PAC file is larger than \(Self.largestSize) bytes")
        }
        self.bytes = Self.text(bytes)
    }

    /// Returns the text in UTF-8, without a byte order mark. As in browsers, the mark decides about the encoding; without one,
    /// it is UTF-8, or Latin-1 if it is not valid UTF-8.
    private static func text(_ bytes: [UInt8]) -> [UInt8] {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return utf8(Array(bytes.dropFirst(3))) }
        for (mark, high) in [([0xFE, 0xFF], 0), ([0xFF, 0xFE], 1)] where bytes.starts(with: mark.map(UInt8.init)) {
            let units = stride(from: 2, to: bytes.count - 1, by: 2).map { index in
                UInt16(bytes[index + high]) << 8 | UInt16(bytes[index + 1 - high])
            }
            return Array(String(decoding: units, as: UTF16.self).utf8)
        }
        if (try? UTF8Span(validating: bytes.span)) != nil { return bytes }
        return Array(String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) })).utf8)
    }

    private static func utf8(_ bytes: [UInt8]) -> [UInt8] { Array(String(decoding: bytes, as: UTF8.self).utf8) }

    /// Parses the result of `FindProxyForURL`, such as `PROXY a:3128; DIRECT`. Parts that are not supported are ignored.
    /// - Throws: `UpstreamFailure` if no part is supported.
    public static func upstreams(_ result: String) throws(UpstreamFailure) -> [Upstream] {
        let upstreams = result.split(separator: ";").prefix(largestCount).compactMap(upstream)
        guard !upstreams.isEmpty else {
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

public import WatchwordProtocol

/// Translates header fields between a site and its front, which programs reach by another URL.
public struct SiteMapping: Sendable {
    private let site: Origin
    private let front: Origin

    /// - Parameters:
    ///   - site: the URL of the site.
    ///   - front: the host and port of the front, the value of `Host` of the request.
    /// - Throws: `FetchFailure` of kind `badURL` if `front` is not a host with an optional port.
    public init(site: FetchURL, front: ExactText) throws(FetchFailure) {
        self.site = site.origin
        self.front = try Origin(scheme: .http, authority: front.string)
    }

    /// Returns the fields of a request as the site expects them: `Host`, `Origin` and `Referer` name the site.
    public func request(_ headers: [HeaderField]) -> [HeaderField] {
        headers.map { field in
            switch field.name.asciiLowercased {
            case "host": HeaderField(field.name, String(site.text.dropFirst("\(site.scheme.rawValue)://".count)))
            case "origin", "referer": HeaderField(field.name, Self.moved(field.value, from: front, to: site))
            default: field
            }
        }
    }

    /// Returns the fields of a response as the program expects them: URLs of the site become URLs of the front.
    ///
    /// `Refresh` is dropped, because it leads past the front. `Set-Cookie` loses `Secure`, as the front is plain HTTP, and a
    /// `Domain` that covers the site.
    public func response(_ headers: [HeaderField]) -> [HeaderField] {
        headers.compactMap { field in
            switch field.name.asciiLowercased {
            case "location", "content-location":
                HeaderField(field.name, Self.moved(field.value, from: site, to: front))
            case "access-control-allow-origin":
                HeaderField(field.name, Self.moved(field.value, from: site, to: front))
            case "set-cookie": HeaderField(field.name, cookie(field.value))
            case "refresh": nil
            default: field
            }
        }
    }

    /// Returns `url` at `target` if its origin is `source`; any other URL, and a relative one, unchanged. A URL without a
    /// scheme (`//host/path`) has that of `source`.
    private static func moved(_ url: String, from source: Origin, to target: Origin) -> String {
        let absolute = url.hasPrefix("//") ? "\(source.scheme.rawValue):\(url)" : url
        guard let parsed = try? FetchURL(absolute), parsed.origin == source,  // guard: front-mapped-origin
            let colon = absolute.utf8.firstIndex(of: UInt8(ascii: ":"))
        else { return url }
        let authority = absolute[absolute.utf8.index(colon, offsetBy: 3)...]
        let rest = authority[(authority.firstIndex { "/?#".contains($0) } ?? authority.endIndex)...]
        return target.text + rest
    }

    private func cookie(_ value: String) -> String {
        let parts = value.split(separator: ";", omittingEmptySubsequences: false)
        let attributes = parts.dropFirst().filter { part in
            let trimmed = part.drop { $0 == " " || $0 == "\t" }
            let name = trimmed.prefix { $0 != "=" && $0 != " " && $0 != "\t" }
            if name.equalsIgnoringASCIICase("Secure") { return false }
            guard name.equalsIgnoringASCIICase("Domain") else { return true }
            return !coversSite(trimmed.dropFirst(name.count).filter { $0 != "=" && $0 != " " && $0 != "\t" })
        }
        return ([parts.first ?? ""] + attributes).joined(separator: ";")
    }

    /// Whether the domain of a cookie matches the site (RFC 6265 section 5.1.3).
    private func coversSite(_ domain: String) -> Bool {
        let name = (domain.hasPrefix(".") ? String(domain.dropFirst()) : domain).asciiLowercased
        guard !name.isEmpty else { return true }
        return site.host == ExactText(name) || site.host.hasSuffix(ExactText(".\(name)"))
    }
}

public import WatchwordProtocol

/// Translates header fields between a site and its front, which programs reach by another URL.
public struct SiteMapping: Sendable {
    private let site: Origin
    private let front: Origin
    private let passesCookies: Bool

    /// - Parameters:
    ///   - site: the URL of the site.
    ///   - front: the host and port of the front, the value of `Host` of the request.
    ///   - passesCookies: whether this host belongs to the site alone. Cookies do not distinguish ports, so that those of other
    ///     sites, and of other servers on this machine, would reach the site under a shared one, and its own reach them.
    /// - Throws: `FetchFailure` of kind `badURL` if `front` is not a host with an optional port.
    public init(site: FetchURL, front: ExactText, passesCookies: Bool) throws(FetchFailure) {
        self.site = site.origin
        self.front = try Origin(scheme: .http, authority: front.string)
        self.passesCookies = passesCookies
    }

    /// Returns the fields of a request as the site expects them: `Host`, `Origin` and `Referer` name the site.
    public func request(_ headers: [HeaderField]) -> [HeaderField] {
        headers.compactMap { field in
            switch field.name.asciiLowercased {
            case "host": HeaderField(field.name, site.authority)
            case "origin", "referer": HeaderField(field.name, Self.moved(field.value, from: front, to: site))
            case "cookie" where !passesCookies: nil  // guard: front-cookies-to-the-site
            default: field
            }
        }
    }

    /// Returns the fields of a response as the program expects them: URLs of the site become URLs of the front.
    ///
    /// `Refresh` is dropped, because it leads past the front. `Set-Cookie` is adapted to plain HTTP and to the host of the front:
    /// see `cookie`.
    public func response(_ headers: [HeaderField]) -> [HeaderField] {
        headers.compactMap { field in
            switch field.name.asciiLowercased {
            case "location", "content-location":
                HeaderField(field.name, Self.moved(field.value, from: site, to: front))
            case "access-control-allow-origin":
                HeaderField(field.name, Self.moved(field.value, from: site, to: front))
            case "set-cookie" where !passesCookies: nil
            case "set-cookie": cookie(field.value).map { HeaderField(field.name, $0) }
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

    /// Returns a cookie of the site as one of the front's host alone; `nil` if its `Domain` does not cover the site, so that
    /// programs would not accept it from the site either.
    ///
    /// `Secure` and what requires it, `SameSite=None` and `Partitioned`, are removed: programs send no such cookie over plain HTTP.
    /// They stay if the name requires them (`__Secure-`, `__Host-`); browsers accept that from names below `localhost`.
    private func cookie(_ value: String) -> String? {
        let parts = value.split(separator: ";", omittingEmptySubsequences: false)
        let first = parts.first ?? ""
        let name = String(first.drop(while: Self.isBlank))
        let isSecure = ["__secure-", "__host-"].contains { name.hasPrefix(ignoringASCIICase: $0) }
        var kept = [first]
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let text = pair.count > 1 ? Self.trimmed(pair[1]) : ""
            switch Self.trimmed(pair[0]).asciiLowercased {
            case "domain":
                guard coversSite(text) else { return nil }
            case "secure" where !isSecure, "partitioned" where !isSecure: break
            case "samesite" where !isSecure && text.equalsIgnoringASCIICase("None"): break
            default: kept.append(part)
            }
        }
        return kept.joined(separator: ";")
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }

    /// Whether the domain of a cookie matches the site (RFC 6265 section 5.1.3).
    private func coversSite(_ domain: Substring) -> Bool {
        let name = (domain.hasPrefix(".") ? domain.dropFirst() : domain).asciiLowercased
        guard !name.isEmpty else { return true }
        return site.host == ExactText(name) || site.host.hasSuffix(ExactText(".\(name)"))
    }
}

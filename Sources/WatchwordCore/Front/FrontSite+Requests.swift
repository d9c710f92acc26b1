public import WatchwordProtocol

extension FrontSite {
    /// Whether a program may send a request with `method` to `path`, a request target in origin form, which is sent as it is.
    ///
    /// If there is a list of paths, each text that a server may decode the path to has to be in it, and a path in which servers
    /// may find different segments is not allowed: one with a dot segment, an encoded slash, a backslash or a NUL byte.
    public func allows(method: String, path: String) -> Bool {
        // guard: front-methods
        guard methods?.contains(where: { ExactText($0) == ExactText(method) }) ?? true else { return false }
        guard let paths else { return true }
        let withoutQuery = ExactText(String(Substring(path.utf8.prefix { $0 != UInt8(ascii: "?") })))
        // guard: front-path-readings
        return HiddenSegments.readTheSame(in: withoutQuery) { reading in
            paths.contains { $0.hasSuffix("/") ? reading.starts(with: $0.utf8) : reading.elementsEqual($0.utf8) }
        }
    }

    /// Returns a host name of its own for the front of a site, so that its cookies are not those of other sites. Browsers and curl
    /// find names below `localhost` on this machine, without a name server (RFC 6761 section 6.3).
    public static func localName(for site: Origin) -> String {
        var words = ""
        for byte in site.host.utf8 {
            let isAllowed = (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte)
            if isAllowed {
                words.unicodeScalars.append(Unicode.Scalar(byte))
            } else if !words.hasSuffix("-") {
                words += "-"
            }
        }
        // Distinguishes sites whose hosts differ only in other characters, in the port or in the scheme.
        let hash = Array(site.text.utf8).withUnsafeBytes { Hexadecimal.text(OAuthText.sha256($0).prefix(5)) }
        return "\(words.prefix(40).drop { $0 == "-" })-\(hash).localhost".replacing("--", with: "-")
    }

    /// Returns the URL of a request with the target `path`.
    public func url(of path: String, _ origin: Origin) throws(FrontRefusal) -> FetchURL {
        do throws(FetchFailure) { return try FetchURL(origin.text + path, keepsTarget: true) } catch {
            throw FrontRefusal(400, "target", error.text)
        }
    }

    /// Returns a request without the fields that programs of this front may not send: a login of their own, and fields by which
    /// a server would use another method, path or host than those that `allows` has checked.
    public func restricted(_ request: FrontRequest) -> FrontRequest {
        var request = request
        if isRestricted { request.authorization = nil }  // guard: front-authorization-of-a-restricted-program
        if isRestricted || methods != nil || paths != nil {
            request.headers.removeAll { Self.overrides($0.name) }  // guard: front-overrides
        }
        return request
    }

    /// Whether a field can replace a part of the request line or `Host`, as `X-HTTP-Method-Override`, `X-Original-URL`,
    /// `X-Rewrite-URL`, `X-Forwarded-Prefix` and `Destination` do. Names differ between servers, so words decide.
    private static func overrides(_ name: String) -> Bool {
        name.asciiLowercased.split(whereSeparator: { !("a"..."z" ~= $0) }).contains { word in
            overridingWords.contains(String(word)) || overridingEnds.contains { word.hasSuffix($0) }
        }
    }

    private static let overridingWords: Set<String> = [
        "backend", "endpoint", "forward", "forwarded", "location", "original", "override", "redirect", "resource",
        "rewrite",
        "rewritten", "rewrote", "route", "script",
    ]
    private static let overridingEnds = [
        "destination", "host", "hosts", "method", "override", "path", "pathinfo", "paths", "target", "uri", "uris",
        "url",
        "urls", "verb",
    ]
}

/// The number of requests that a front of a site still accepts.
public struct FrontBudget: Sendable, Equatable {
    /// The requests left; `nil` for no limit.
    public private(set) var remaining: Int?

    public init(_ site: FrontSite) { remaining = site.budget }

    /// Counts one request.
    /// - Throws: `FrontRefusal` with status 429 if the budget is used up.
    public mutating func take() throws(FrontRefusal) {
        guard let left = remaining else { return }
        guard left > 0 else {  // guard: front-budget
            throw FrontRefusal(
                429, "budget", "the budget of requests for this front is used up; open the front again to continue")
        }
        remaining = left - 1
    }
}

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

    /// Returns the URL of a request with the target `path`, or `*` for the server itself.
    public func url(of path: String, _ origin: Origin) throws(FrontRefusal) -> FetchURL {
        if path == "*" { return FetchURL(server: origin) }
        guard origin.text.utf8.count + path.utf8.count <= Limits.urlBytes else { throw .targetSize }
        do throws(FetchFailure) { return try FetchURL(origin.text + path, keepsTarget: true) } catch {
            throw FrontRefusal(400, "target", error.text)
        }
    }

    /// Returns a request without the login of the program, if the front is restricted.
    public func restricted(_ request: FrontRequest) -> FrontRequest {
        var request = request
        if isRestricted { request.authorization = nil }
        return request
    }

    /// Returns the fields that the site gets. If programs may not send every request, these are fields of HTTP that name neither
    /// a method, a path, a host nor a login, and those that the front was opened with: servers take methods and paths from
    /// fields of many names.
    public func passedOn(_ headers: [HeaderField]) -> [HeaderField] {  // guard: front-fields
        guard isRestricted || methods != nil || paths != nil else { return headers }
        let added = FieldNames(fields ?? [])
        return headers.filter { Self.usualFields.contains($0.name) || added.contains($0.name) }
    }

    private static let usualFields: FieldNames = [
        // RFC 9110 and 9111, and others of the registry of field names at IANA.
        "accept", "accept-charset", "accept-encoding", "accept-language", "baggage", "cache-control", "content-digest",
        "content-disposition", "content-encoding", "content-language", "content-md5", "content-range", "content-type",
        "cookie", "date", "depth", "digest", "dnt", "from", "idempotency-key", "if", "if-match", "if-modified-since",
        "if-none-match", "if-range", "if-unmodified-since", "last-event-id", "lock-token", "max-forwards", "origin",
        "overwrite", "pragma", "prefer", "priority", "range", "referer", "repr-digest", "save-data", "sec-ch-ua",
        "sec-ch-ua-mobile",
        "sec-ch-ua-platform", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user", "sec-gpc",
        "sec-purpose", "sec-websocket-extensions", "sec-websocket-key", "sec-websocket-protocol",
        "sec-websocket-version", "timeout", "traceparent", "tracestate", "upgrade-insecure-requests", "user-agent",
        "via", "want-content-digest", "want-digest", "want-repr-digest",
        // Common ones: of git, of the Model Context Protocol, and of web pages against forged requests.
        "git-protocol", "mcp-protocol-version", "mcp-session-id", "x-correlation-id", "x-csrf-token", "x-csrftoken",
        "x-request-id", "x-requested-with", "x-xsrf-token",
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

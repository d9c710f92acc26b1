internal import WatchwordProtocol

/// Decides which header fields and methods a client may send, and which fields follow a redirect to another origin.
enum HeaderPolicy {
    /// Fields that only the broker sets, because they determine the target, the framing or the credentials of a
    /// request.
    private static let reserved: FieldNames = [
        "authorization", "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
        "upgrade", "expect", "cookie2", "http2-settings",
    ]

    private static let credentials: FieldNames = ["authorization", "proxy-authorization"]

    /// The prefix of fields that are addressed to a proxy.
    private static let reservedPrefix = "proxy-"

    /// CONNECT opens a tunnel; TRACE and TRACK make a server return the request with its credential (RFC 9110 section
    /// 9.3.8). Compared regardless of case, since some servers ignore the case of methods.
    private static let reservedMethods = ["connect", "trace", "track"]  // guard: method-connect

    /// Fields that may follow a redirect to another origin (SEMANTICS rule 23). Any other field may contain a secret of
    /// the program.
    private static let harmless: FieldNames = [
        "accept", "accept-encoding", "accept-language", "cache-control", "pragma", "range", "user-agent",
    ]

    /// Fields that describe the body. They are dropped together with it on a redirect (RFC 9110 section 15.4).
    private static let aboutBody: FieldNames = [
        "content-type", "content-encoding", "content-language", "content-location", "content-md5", "digest",
        "last-modified",
    ]

    /// - Throws: `FetchFailure` of kind `invalidHeader`.
    static func checked(_ headers: [HeaderField]) throws(FetchFailure) -> [HeaderField] {
        guard headers.count <= Limits.requestHeaderFields else {
            throw .invalidHeader("too many header fields (limit \(Limits.requestHeaderFields))")
        }
        let bytes = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.headerByteCount }
        guard bytes <= Limits.requestHeaderBytes else {
            throw .invalidHeader("header fields too large (limit \(Limits.requestHeaderBytes) bytes)")
        }
        for field in headers { try check(field) }
        return headers
    }

    private static func check(_ field: HeaderField) throws(FetchFailure) {
        var name: String { field.name.shortened }
        guard field.name.isToken else {
            throw .invalidHeader("invalid header field name \"\(name)\"; use letters, digits and hyphens")
        }
        guard field.value.isFieldText else {  // guard: header-line-break
            throw .invalidHeader("the value of header field \(name) contains a line break or another control character")
        }
        if credentials.contains(field.name) {  // guard: header-authorization
            throw .invalidHeader(
                "header field \(name) is set by the broker; provide the login as a credential instead"
            )
        }
        // guard: header-reserved
        guard !reserved.contains(field.name), !field.name.hasPrefix(ignoringASCIICase: reservedPrefix) else {
            throw .invalidHeader("header field \(name) is set by the broker; remove it")
        }
    }

    /// Fields that the broker adds unless the client sets or omits them.
    private static let omissible: FieldNames = ["accept", "user-agent", "expect"]

    /// Returns the names in lower case.
    /// - Throws: `FetchFailure` of kind `invalidHeader` for a field that cannot be omitted.
    static func checkedOmissions(_ names: [String]) throws(FetchFailure) -> Set<String> {
        for name in names where !omissible.contains(name) {
            throw .invalidHeader(
                "header field \(name.shortened) cannot be omitted; only Accept, User-Agent and Expect can")
        }
        return Set(names.map(\.asciiLowercased))
    }

    /// Size of the longest method, in bytes.
    static let methodBytes = 32

    /// - Throws: `FetchFailure` of kind `invalidMethod`.
    static func checkedMethod(_ method: String) throws(FetchFailure) -> String {
        guard method.utf8.count <= methodBytes, method.isToken,
            !reservedMethods.contains(method.asciiLowercased)
        else {
            throw FetchFailure(
                .invalidMethod,
                "method \"\(method.shortened)\" is invalid or not allowed; use GET, HEAD, POST, PUT or the like")
        }
        return method
    }

    static func isHarmless(_ field: HeaderField) -> Bool { harmless.contains(field.name) }

    static func isAboutBody(_ field: HeaderField) -> Bool { aboutBody.contains(field.name) }
}

extension FetchFailure {
    fileprivate static func invalidHeader(_ text: String) -> FetchFailure { FetchFailure(.invalidHeader, text) }
}

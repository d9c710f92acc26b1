internal import WatchwordProtocol

/// Which header fields and methods a client may send, and which follow a redirect to another origin.
enum HeaderPolicy {
    /// Fields that say where a request goes, where it ends, or who sends it: they are the broker's.
    private static let reserved: Set<String> = [
        "authorization", "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
        "upgrade", "expect", "cookie2", "http2-settings",
    ]

    /// What a proxy on the way would take for its own.
    private static let reservedPrefix = "proxy-"

    /// They make a tunnel, or a server repeat the request with the credential in it (RFC 9110 section 9.3.8). Methods are told
    /// apart by case, but not by every server.
    private static let reservedMethods: Set<String> = ["connect", "trace", "track"]

    /// Plainly harmless at any server (semantics rule 23). Everything else may be a secret in some program's own way.
    private static let harmless: Set<String> = [
        "accept", "accept-encoding", "accept-language", "cache-control", "pragma", "range", "user-agent",
    ]

    /// Fields that speak of the body (RFC 9110 section 15.4: dropped with it).
    private static let aboutBody: Set<String> = [
        "content-type", "content-encoding", "content-language", "content-location", "content-md5", "digest",
        "last-modified",
    ]

    /// - Throws: `FetchFailure` of kind `invalidHeader`.
    static func checked(_ headers: [HeaderField]) throws(FetchFailure) -> [HeaderField] {
        guard headers.count <= Limits.requestHeaderFields else {
            throw .invalidHeader("There are more than \(Limits.requestHeaderFields) header fields.")
        }
        let bytes = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        guard bytes <= Limits.requestHeaderBytes else {
            throw .invalidHeader("The header fields are larger than \(Limits.requestHeaderBytes) bytes.")
        }
        for field in headers { try check(field) }
        return headers
    }

    private static func check(_ field: HeaderField) throws(FetchFailure) {
        let name = field.name.shortened
        guard !field.name.isEmpty, field.name.utf8.allSatisfy(\.isTokenCharacter) else {
            throw .invalidHeader("\"\(name)\" is not the name of a header field.")
        }
        let breaksLine = field.value.utf8.contains { $0 != 0x09 && ($0 < 0x20 || $0 == 0x7F) }
        guard !breaksLine else {
            throw .invalidHeader(
                "The value of the header field \(name) holds a line break or another control character.")
        }
        let lowercased = field.name.asciiLowercased
        if lowercased == "authorization" || lowercased == "proxy-authorization" {
            throw .invalidHeader("\(name) is made by the broker. Give the credential as the parameter credential.")
        }
        guard !reserved.contains(lowercased), !lowercased.hasPrefix(reservedPrefix) else {
            throw .invalidHeader("The header field \(name) is the broker's to set. Leave it out.")
        }
    }

    /// Fields that the broker adds where the client gives none, and leaves out when it is told to.
    private static let omissible: Set<String> = ["accept", "user-agent", "expect"]

    /// The names in lower case.
    /// - Throws: `FetchFailure` of kind `invalidHeader` for a field that a request cannot do without.
    static func checkedOmissions(_ names: [String]) throws(FetchFailure) -> Set<String> {
        for name in names where !omissible.contains(name.asciiLowercased) {
            throw .invalidHeader(
                "The header field \(name.shortened) cannot be left out. Accept, User-Agent and Expect can.")
        }
        return Set(names.map(\.asciiLowercased))
    }

    /// - Throws: `FetchFailure` of kind `invalidMethod`.
    static func checkedMethod(_ method: String) throws(FetchFailure) -> String {
        let longest = 32
        guard !method.isEmpty, method.utf8.count <= longest, method.utf8.allSatisfy(\.isTokenCharacter),
            !reservedMethods.contains(method.asciiLowercased)
        else {
            throw FetchFailure(
                .invalidMethod,
                "\"\(method.shortened)\" is not a method that can be sent. GET, HEAD, POST, PUT and the like can.")
        }
        return method
    }

    static func isHarmless(_ field: HeaderField) -> Bool { harmless.contains(field.name.asciiLowercased) }

    static func isAboutBody(_ field: HeaderField) -> Bool { aboutBody.contains(field.name.asciiLowercased) }
}

extension FetchFailure {
    fileprivate static func invalidHeader(_ text: String) -> FetchFailure { FetchFailure(.invalidHeader, text) }
}

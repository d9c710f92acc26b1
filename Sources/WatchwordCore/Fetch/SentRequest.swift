public import JSONText
public import WatchwordProtocol

/// A request as it is sent, with its logins redacted: the content of `fetch/request`.
public struct SentRequest: Sendable, Equatable {
    public var method: String
    public var url: String
    /// The request target (RFC 9112 section 3.2).
    public var target: String
    /// The header fields in the order in which they are sent. Values of logins are redacted.
    public var headers: [HeaderField]
    public var login: FetchRunResult.Authentication?
    public var proxyLogin: FetchRunResult.Authentication?

    init(_ request: SharedRequest, _ outgoing: RequestLogins) {
        method = request.method
        url = request.url.text
        target = request.target
        login = outgoing.server?.authentication
        proxyLogin = outgoing.proxy?.authentication
        headers = Self.fields(request, isForwarded: request.isForwarded)
    }

    private static let redacted = "[redacted]"

    /// Returns the header fields in libcurl's order.
    private static func fields(_ request: SharedRequest, isForwarded: Bool) -> [HeaderField] {
        var fields = [HeaderField("Host", String(request.url.origin.text.drop { $0 != ":" }.dropFirst(3)))]
        if isForwarded, let proxy = request.proxy, let login = shown(proxy.authorization, request.proxyHandshake) {
            fields.append(HeaderField("Proxy-Authorization", login))
        }
        func addsByItself(_ name: String) -> Bool {
            !request.options.omittedHeaders.contains(name.asciiLowercased)
                && request.headers.firstValue(of: name) == nil
        }
        if addsByItself("User-Agent") { fields.append(HeaderField("User-Agent", "watchword")) }
        if addsByItself("Accept") { fields.append(HeaderField("Accept", "*/*")) }
        if request.options.decompresses { fields.append(HeaderField("Accept-Encoding", "gzip, deflate")) }
        let length = request.sendsBody ? length(of: request.body) : nil
        if request.sendsBody && length == nil { fields.append(HeaderField("Transfer-Encoding", "chunked")) }
        fields += request.headers
        if let login = shown(request.authorization, request.handshake) {
            fields.append(HeaderField("Authorization", login))
        }
        if let length { fields.append(HeaderField("Content-Length", "\(length)")) }
        if request.sendsBody && request.announcesBody && !request.options.omittedHeaders.contains("expect") {
            fields.append(HeaderField("Expect", "100-continue"))
        }
        return fields
    }

    /// Returns the length of the body; `nil` if it is sent in chunks.
    private static func length(of body: RequestBody?) -> Int? {
        switch body {
        case .bytes(let bytes)?: bytes.count
        case .stream(let stream)?: stream.size
        case nil: 0
        }
    }

    /// Returns the value of a login with all but the scheme redacted.
    private static func shown(_ authorization: Secret?, _ handshake: Handshake?) -> String? {
        if let handshake { return "\(handshake.scheme == .ntlm ? "NTLM" : "Negotiate") \(redacted)" }
        return authorization.map { value in
            let scheme = value.withUnsafeBytes { bytes in
                bytes.prefix { $0 != 0x20 }.count < bytes.count
                    ? String(decoding: bytes.prefix { $0 != 0x20 }, as: UTF8.self) + " " : ""
            }
            return scheme + redacted  // guard: exchange-login
        }
    }

    public var json: JSON {
        [
            "method": .string(method), "url": .string(url), "target": .string(target), "headers": headers.json,
            "auth": login?.json, "proxyAuth": proxyLogin?.json,
        ]
    }
}

/// The status line and header fields of any response of a fetch: a challenge, a redirect or the result.
public struct ResponseSummary: Sendable, Equatable {
    public var status: Int
    public var reason: String
    public var httpVersion: String
    public var headers: HeaderBlock

    init(_ response: TransferResponse) {
        status = response.status
        reason = response.reason
        httpVersion = response.httpVersion
        headers = response.headers
    }

    public var json: JSON {
        [
            "status": .integer(status), "reason": reason.isEmpty ? nil : .string(reason.readable),
            "httpVersion": .string(httpVersion), "headers": headers.json, "rawBytes": headers.rawBytes(reason: reason),
        ]
    }
}

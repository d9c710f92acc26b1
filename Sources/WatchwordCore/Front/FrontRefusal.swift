internal import WatchwordProtocol

/// The reason why a front does not forward a request. It becomes the response to the program, and the front closes the
/// connection afterwards.
public struct FrontRefusal: Error, Sendable, Equatable {
    /// The status of the response (RFC 9110 section 15).
    public var status: Int
    /// A stable word for the audit log.
    public var reason: String
    /// The message: what happened, to what, and what to do. Contains no credential.
    public var text: String
    /// Whether the response has a body with the message. A web page must not be able to recognize the front by it.
    public var hasBody: Bool
    /// The URL to which a browser is redirected.
    public var location: String?

    public init(_ status: Int, _ reason: String, _ text: String, hasBody: Bool = true) {
        self.status = status
        self.reason = reason
        self.text = text
        self.hasBody = hasBody
    }

    /// Returns the complete response, with `Connection: close`. Status 407 contains the challenge for the token of the front.
    /// - Parameter method: the method of the request, if known; the response to HEAD has no body.
    /// - Parameter sinceEpoch: the time.
    public func bytes(to method: String? = nil, at sinceEpoch: Duration) -> [UInt8] {
        let body = hasBody ? Array("watchword: \(FrontResponse.sanitised(text))\n".utf8) : []
        var fields = ["Date: \(HTTPDate.text(sinceEpoch))", "Content-Length: \(body.count)", "Connection: close"]
        if hasBody { fields += ["Content-Type: text/plain; charset=utf-8"] }
        if let location { fields += ["Location: \(FrontResponse.sanitised(location))"] }
        if status == 407 { fields += ["Proxy-Authenticate: Basic realm=\"watchword\""] }
        let head = "HTTP/1.1 \(FrontResponse.statusLine(status))\r\n" + fields.joined(separator: "\r\n") + "\r\n\r\n"
        return Array(head.utf8) + (method == "HEAD" ? [] : body)
    }
}

/// Requests that are malformed or ambiguous (RFC 9112).
extension FrontRefusal {
    static let requestLine = FrontRefusal(
        400, "request-line", "malformed request line; send \"METHOD TARGET HTTP/1.1\"")
    static let method = FrontRefusal(
        501, "method", "the method is too long (limit \(HeaderPolicy.methodBytes) bytes); use GET, POST or the like")
    static let version = FrontRefusal(505, "version", "unsupported version of HTTP; use HTTP/1.1 or HTTP/1.0")
    static let targetSize = FrontRefusal(
        414, "target-size", "the request target is too long (limit \(Limits.urlBytes) bytes); send a shorter one")
    static let lineFeed = FrontRefusal(400, "line-feed", "a line does not end with CR and LF; end each line with both")
    static let emptyLines = FrontRefusal(400, "empty-lines", "too many empty lines before the request; send none")
    static let headSize = FrontRefusal(
        431, "head-size", "the head of the request is too large; send fewer header fields")
    static let fieldCount = FrontRefusal(431, "field-count", "the request has too many header fields; send fewer")
    static let fold = FrontRefusal(400, "fold", "a header field continues on a second line; send it on one line")
    static let fieldName = FrontRefusal(
        400, "field-name", "a header field has an invalid name; write \"Name: value\" without a space before the colon")
    static let fieldValue = FrontRefusal(
        400, "field-value", "the value of a header field contains a control character; remove it")
    static let host = FrontRefusal(400, "host", "the request needs exactly one Host field with a valid host")
    static let bothLengths = FrontRefusal(
        400, "both-lengths", "the request has Content-Length and Transfer-Encoding; send only one of them")
    static let length = FrontRefusal(400, "length", "invalid Content-Length; send one decimal number, once")
    static let bodySize = FrontRefusal(
        413, "body-size", "the body of the request is too large (limit \(Limits.bodyBytes) bytes); send a smaller one")
    static let coding = FrontRefusal(
        501, "coding", "unsupported Transfer-Encoding; use chunked, or send Content-Length")
    static let codingOfOldVersion = FrontRefusal(
        400, "coding-in-1.0", "Transfer-Encoding is not allowed in HTTP/1.0; use HTTP/1.1")
    static let chunk = FrontRefusal(400, "chunk", "malformed chunk in the body; check the chunked coding")
    static let chunkExtension = FrontRefusal(
        400, "chunk-extension", "the chunk extensions of the body are too long or malformed; omit them")
    static let twoCredentials = FrontRefusal(
        400, "two-credentials",
        "a field with a credential occurs twice; send Authorization and Proxy-Authorization once")
    static let expectation = FrontRefusal(
        417, "expectation", "unsupported Expect field; only 100-continue is supported")
    static let userInformation = FrontRefusal(
        400, "user-information", "user and password are not allowed in the request target; remove them")
    static let target = FrontRefusal(
        400, "target", "malformed request target; send an http:// URL, a path, or CONNECT with host:port")
    static let scheme = FrontRefusal(
        400, "scheme", "the proxy accepts http:// URLs only; open a tunnel with CONNECT for any other scheme")
    static let maxForwards = FrontRefusal(
        400, "max-forwards", "invalid Max-Forwards; send one decimal number, once")
    static let connectBody = FrontRefusal(400, "connect-body", "a CONNECT request must not have a body; remove it")
}

/// Requests that are well-formed, but not allowed.
extension FrontRefusal {
    public static let notForProxy = FrontRefusal(
        400, "not-for-proxy", "this is a proxy; send an absolute http:// URL, or CONNECT", hasBody: false)
    static let notForSite = FrontRefusal(
        400, "not-for-site", "this is not a proxy; send a path as the request target", hasBody: false)
    static let token = FrontRefusal(
        407, "token", "the token of the proxy is missing or wrong; use the proxy URL that watchword printed")
    public static let wrongName = FrontRefusal(
        403, "wrong-name", "the Host field is not the name and port of this front; use the URL that watchword printed",
        hasBody: false)
    static let foreignPage = FrontRefusal(
        403, "foreign-page", "a web page of another site sent the request; only programs may use this front",
        hasBody: false)

    /// Leads a browser to the name of the front, because the site gets no cookies under the address.
    public static func elsewhere(_ url: String) -> FrontRefusal {
        var refusal = FrontRefusal(307, "own-name", "the site is at \(url)", hasBody: false)
        refusal.location = url
        return refusal
    }

    /// The response to OPTIONS that no further server gets.
    static let lastRecipient = FrontRefusal(200, "max-forwards", "Max-Forwards is 0", hasBody: false)

    static func hostNotAllowed(_ host: ExactText) -> FrontRefusal {
        FrontRefusal(
            403, "host-not-allowed",
            "this proxy may not connect to \"\(host.shortened)\"; add the host to the allowed hosts of the front")
    }

    public static func requestNotAllowed(_ method: String) -> FrontRefusal {
        FrontRefusal(
            403, "request-not-allowed",
            "this front does not allow \(method.shortened) for this path; add it to the methods and paths of the front")
    }

    static func portNotAllowed(_ port: Int) -> FrontRefusal {
        FrontRefusal(
            403, "port-not-allowed",
            "this proxy may not open a tunnel to port \(port); add the port to the tunnel ports of the front")
    }
}

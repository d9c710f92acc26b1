public import JSONText

/// The result of `fetch/run`: the response with any status, and how it was obtained.
public struct FetchRunResult: Sendable, Equatable {
    public enum Body: Sendable, Equatable {
        case inline([UInt8])
        /// A body that is not inline, for example because it is larger than the limit; `fetch/read` returns it.
        case handle
    }

    /// The credential that the server accepted last.
    public struct Authentication: Sendable, Equatable {
        public var method: AuthenticationMethod
        public var source: CredentialSource
        /// The user; `nil` for a credential without one.
        public var user: ExactText?

        public init(method: AuthenticationMethod, source: CredentialSource, user: ExactText?) {
            self.method = method
            self.source = source
            self.user = user
        }
    }

    public var fetchID: String
    public var status: Int
    /// The reason phrase of the status line (RFC 9112 section 4); empty if there is none, as in HTTP/2.
    public var reason: String
    /// The URL of the last hop.
    public var url: String
    public var httpVersion: String
    public var headers: [HeaderField]
    public var body: Body
    /// The size of the body. While the body is being received: the size that the server announced, or `nil`.
    public var bodyBytes: Int?
    public var authentication: Authentication?
    /// The credential that the proxy accepted, if it required one.
    public var proxyAuthentication: Authentication?
    /// The reason why no respondent was asked, if the response requires a login.
    public var unanswered: Unanswered?
    /// The number of requests sent, for all hops and attempts.
    public var exchanges: Int
    public var totalTime: Duration
    /// The part of `totalTime` spent waiting for answers to challenges.
    public var challengeTime: Duration

    public init(
        fetchID: String, status: Int, reason: String = "", url: String, httpVersion: String, headers: [HeaderField],
        body: Body, bodyBytes: Int?, authentication: Authentication?, exchanges: Int,
        proxyAuthentication: Authentication? = nil, unanswered: Unanswered? = nil, totalTime: Duration,
        challengeTime: Duration
    ) {
        self.fetchID = fetchID
        self.status = status
        self.reason = reason
        self.url = url
        self.httpVersion = httpVersion
        self.headers = headers
        self.body = body
        self.bodyBytes = bodyBytes
        self.authentication = authentication
        self.proxyAuthentication = proxyAuthentication
        self.unanswered = unanswered
        self.exchanges = exchanges
        self.totalTime = totalTime
        self.challengeTime = challengeTime
    }

    public var json: JSON { json(body: body.json(fetchID: fetchID)) }

    /// The result without the body, for `fetch/completed`.
    public var completedJSON: JSON { json(body: nil) }

    /// Returns the parameters of `fetch/headers` for a stepwise fetch, whose `fetch/start` had the id `requestID`.
    public func headersJSON(_ requestID: RequestID) -> JSON {
        [
            "fetchId": .string(fetchID), "requestId": requestID.json, "status": .integer(status),
            "reason": reasonJSON, "httpVersion": .string(httpVersion), "url": .string(url), "headers": headers.json,
            "rawBytes": headers.rawBytes(reason: reason),
            "bodyBytes": bodyBytes.map { .integer($0) } ?? .null,
        ]
    }

    private var reasonJSON: JSON? { reason.isEmpty ? nil : .string(reason.readable) }

    private func json(body: JSON?) -> JSON {
        let result: JSON = [
            "fetchId": .string(fetchID), "status": .integer(status), "reason": reasonJSON, "url": .string(url),
            "httpVersion": .string(httpVersion), "headers": headers.json, "rawBytes": headers.rawBytes(reason: reason),
            "body": body,
            "bodyBytes": bodyBytes.map { .integer($0) } ?? .null, "auth": authentication?.json ?? .null,
            "proxyAuth": proxyAuthentication?.json, "exchanges": .integer(exchanges),
            "timingsMs": ["total": totalTime.json, "challenge": challengeTime.json],
        ]
        return unanswered.map { result.adding($0.members) } ?? result
    }
}

extension FetchRunResult.Body {
    fileprivate func json(fetchID: String) -> JSON {
        switch self {
        case .inline(let bytes): BodyValue.json(bytes)
        case .handle: ["type": "handle", "fetchId": .string(fetchID)]
        }
    }
}

extension FetchRunResult.Authentication {
    public var json: JSON {
        [
            "authenticationMethod": .string(method.rawValue), "source": .string(source.rawValue),
            "user": user?.json ?? .null,
        ]
    }
}

extension Duration {
    /// Milliseconds with one decimal.
    fileprivate var json: JSON? { .real((milliseconds * 10).rounded() / 10) }
}

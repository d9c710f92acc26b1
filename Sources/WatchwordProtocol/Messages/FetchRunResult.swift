public import JSONText

/// The result of `fetch/run`: the response with any status, and how it was obtained.
public final class FetchRunResult: Sendable {
    public enum Body: Sendable {
        case inline(BodyValue)
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

    public let fetchID: String
    public let status: Int
    /// The reason phrase of the status line (RFC 9112 section 4); empty if there is none, as in HTTP/2.
    public let reason: String
    /// The URL of the last hop.
    public let url: String
    public let httpVersion: String
    public let headers: HeaderBlock
    public let body: Body
    /// The size of the body. While the body is being received: the size that the server announced, or `nil`.
    public let bodyBytes: Int?
    public let authentication: Authentication?
    /// The credential that the proxy accepted, if it required one.
    public let proxyAuthentication: Authentication?
    /// The reason why no respondent was asked, if the response requires a login.
    public let unanswered: Unanswered?
    /// The number of requests sent, for all hops and attempts.
    public let exchanges: Int
    public let totalTime: Duration
    /// The part of `totalTime` spent waiting for answers to challenges.
    public let challengeTime: Duration

    public init(
        fetchID: String, status: Int, reason: String = "", url: String, httpVersion: String, headers: HeaderBlock,
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

    public var json: JSON { .written(self) }

    /// Returns the result without the body, for `fetch/completed`.
    /// - Parameter bodyBytes: the size of the whole body.
    public func completedJSON(bodyBytes: Int?) -> JSON { .written(Completed(result: self, bodyBytes: bodyBytes)) }

    private final class Completed: JSONWritable {
        let result: FetchRunResult
        let bodyBytes: Int?

        init(result: FetchRunResult, bodyBytes: Int?) { (self.result, self.bodyBytes) = (result, bodyBytes) }

        func write(to writer: inout JSONWriter) { result.write(to: &writer, nil, bodyBytes: bodyBytes) }
    }

    /// Returns the parameters of `fetch/headers` for a stepwise fetch, whose `fetch/start` had the id `requestID`.
    public func headersJSON(_ requestID: RequestID) -> JSON {
        [
            "fetchId": .string(fetchID), "requestId": requestID.json, "status": .integer(status),
            "reason": reason.isEmpty ? nil : .string(reason.readable), "httpVersion": .string(httpVersion),
            "url": .string(url), "headers": headers.json, "rawBytes": headers.rawBytes(reason: reason),
            "bodyBytes": bodyBytes.map { .integer($0) } ?? .null,
        ]
    }
}

extension FetchRunResult: JSONWritable {
    public func write(to writer: inout JSONWriter) { write(to: &writer, body, bodyBytes: bodyBytes) }

    private func write(to writer: inout JSONWriter, _ body: Body?, bodyBytes: Int?) {
        writer.beginObject()
        writer.member("fetchId", fetchID)
        writer.member("status", status)
        if !reason.isEmpty { writer.member("reason", reason.readable) }
        writer.member("url", url)
        writer.member("httpVersion", httpVersion)
        writer.name("headers")
        let hasMarks = headers.write(to: &writer)
        if hasMarks || reason.isMarked, let raw = headers.rawBytes(reason: reason) { writer.member("rawBytes", raw) }
        if let body {
            writer.name("body")
            body.write(to: &writer, fetchID)
        }
        writer.member("bodyBytes", bodyBytes.map { .integer($0) } ?? .null)
        writer.member("auth", authentication?.json ?? .null)
        if let proxyAuthentication { writer.member("proxyAuth", proxyAuthentication.json) }
        writer.member("exchanges", exchanges)
        writer.name("timingsMs")
        writer.beginObject()
        writer.member("total", totalTime.tenthsOfMilliseconds)
        writer.member("challenge", challengeTime.tenthsOfMilliseconds)
        writer.endObject()
        unanswered?.write(to: &writer)
        writer.endObject()
    }
}

extension FetchRunResult.Body {
    fileprivate func write(to writer: inout JSONWriter, _ fetchID: String) {
        switch self {
        case .inline(let body): body.write(to: &writer)
        case .handle:
            writer.beginObject()
            writer.member("type", "handle" as String)
            writer.member("fetchId", fetchID)
            writer.endObject()
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
    fileprivate var tenthsOfMilliseconds: Double { (milliseconds * 10).rounded() / 10 }
}

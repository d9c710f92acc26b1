import JSONText
import WatchwordProtocol

/// The final response's header, as `fetch/headers` brings it.
struct ResponseHead: Equatable {
    var status: Int
    /// The reason phrase; empty where there is none.
    var reason: String
    var httpVersion: String
    var headers: [HeaderField]
    /// As the server has announced it.
    var bodyBytes: Int?

    init(_ params: JSON) {
        status = params["status"]?.integer ?? 0
        reason = params["reason"]?.string ?? ""
        httpVersion = params["httpVersion"]?.string ?? "1.1"
        headers = (params["headers"]?.elements ?? []).map { field in
            HeaderField(field.elements?.first?.string ?? "", field.elements?.last?.string ?? "")
        }
        bodyBytes = params["bodyBytes"]?.integer
    }

    /// With the blank behind the status that RFC 9112 section 4 wants, also where no reason follows.
    var statusLine: String { "HTTP/\(httpVersion) \(status) \(reason)" }

    /// A response that curl follows with `-L`.
    var isRedirect: Bool { (300..<400).contains(status) && headers.firstValue(of: "Location") != nil }

    /// What `-i` shows.
    var bytes: [UInt8] {
        let lines = [statusLine] + headers.map { "\($0.name): \($0.value)" } + ["", ""]
        return Array(lines.joined(separator: "\r\n").utf8)
    }

    /// What `If-Range` may ask with later (RFC 9110 section 13.1.5): a strong entity tag, or a date of modification that is a
    /// minute older than the response (section 8.8.2.2). `nil` for a response that cannot be continued.
    var strongValidator: String? {
        if let tag = headers.firstValue(of: "ETag") { return tag.hasPrefix("\"") && tag.count > 1 ? tag : nil }
        guard let modified = headers.firstValue(of: "Last-Modified"), let then = HTTPDate.seconds(modified),
            let now = headers.firstValue(of: "Date").flatMap(HTTPDate.seconds)
        else { return nil }
        return now - then >= 60 ? modified : nil
    }

    /// The numbers of `Content-Range: bytes 5-9/10`, and of `bytes */10` (RFC 9110 section 14.4).
    var contentRange: (first: Int?, total: Int?)? {
        guard let text = headers.firstValue(of: "Content-Range"), text.asciiLowercased.hasPrefix("bytes ") else {
            return nil
        }
        let parts = text.dropFirst(6).split(separator: "/", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        return (parts[0].split(separator: "-").first.flatMap { Int($0) }, Int(parts[1]))
    }
}

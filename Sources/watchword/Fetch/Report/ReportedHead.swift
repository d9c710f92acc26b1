import JSONText
import WatchwordProtocol

/// The header of a response, as reported by `fetch/headers` or `fetch/response`.
struct ReportedHead: Equatable {
    var status: Int
    /// The reason phrase; may be empty.
    var reason: String
    var httpVersion: String
    var headers: [HeaderField]
    /// The size of the body that the server announced; `nil` if unknown.
    var bodyBytes: Int?

    init(_ params: JSON) {
        status = params["status"]?.integer ?? 0
        let raw = params["rawBytes"]
        reason = Self.received(raw?["reason"]) ?? params["reason"]?.string ?? ""
        httpVersion = params["httpVersion"]?.string ?? "1.1"
        headers = (params["headers"]?.elements ?? []).enumerated().map { index, field in
            let value = raw.flatMap { Self.received($0["headers"]?["\(index)"]) } ?? field.elements?.last?.string
            return HeaderField(field.elements?.first?.string ?? "", value ?? "")
        }
        bodyBytes = params["bodyBytes"]?.integer
    }

    /// Returns the text of bytes in base64.
    private static func received(_ json: JSON?) -> String? {
        guard let bytes = json?.withUTF8({ Base64.decode($0) }) ?? nil else { return nil }
        return bytes.withUnsafeBytes { String(header: $0) }
    }

    /// The status line. RFC 9112 section 4 requires the blank after the status even without a reason.
    var statusLine: String { "HTTP/\(httpVersion) \(status) \(reason)" }

    /// Whether curl would follow this response with `-L`.
    var isRedirect: Bool { (300..<400).contains(status) && headers.firstValue(of: "Location") != nil }

    /// The header as `-i` and `-D` write it.
    var bytes: [UInt8] {
        let lines = [statusLine] + headers.map { "\($0.name): \($0.value)" } + ["", ""]
        return lines.joined(separator: "\r\n").headerBytes
    }

    /// The validator for a later `If-Range` (RFC 9110 section 13.1.5): a strong entity tag, or a modification date at least 60
    /// seconds before `Date`, as RFC 7232 section 2.2.2 required (1 second in RFC 9110 section 8.8.2.2). `nil` if the response
    /// cannot be resumed.
    var strongValidator: String? {
        if let tag = headers.firstValue(of: "ETag") {
            // Fields of a request are UTF-8.
            return tag.hasPrefix("\"") && tag.count > 1 && !tag.isMarked ? tag : nil
        }
        guard let modified = headers.firstValue(of: "Last-Modified"), let then = HTTPDate.seconds(modified),
            let now = headers.firstValue(of: "Date").flatMap(HTTPDate.seconds)
        else { return nil }
        return now - then >= 60 ? modified : nil
    }

    /// The first byte and total size in `Content-Range: bytes 5-9/10` or `bytes */10` (RFC 9110 section 14.4).
    var contentRange: (first: Int?, total: Int?)? {
        guard let text = headers.firstValue(of: "Content-Range"), text.asciiLowercased.hasPrefix("bytes ") else {
            return nil
        }
        let parts = text.dropFirst(6).split(separator: "/", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        return (parts[0].split(separator: "-").first.flatMap { Int($0) }, Int(parts[1]))
    }
}

/// The requests and responses of one fetch, as reported by `fetch/request` and `fetch/response`.
struct ExchangeLog: Equatable {
    /// The method of the last request.
    private(set) var method: String?
    private(set) var url: String?
    private(set) var redirects = 0
    /// The size of all response headers in bytes.
    private(set) var headerBytes = 0
    /// The last response. It is not the final one if another request follows.
    private var pending: ReportedHead?

    /// Records a notification. For the request after a redirect, returns the header of the redirect.
    mutating func record(_ method: String, _ params: JSON) -> ReportedHead? {
        switch method {
        case BrokerMethodName.fetchRequest.rawValue:
            self.method = params["method"]?.string
            url = params["url"]?.string
            defer { pending = nil }
            // A response whose challenge is being answered is not part of the output.
            guard let pending, (300..<400).contains(pending.status) else { return nil }
            redirects += 1
            return pending
        case BrokerMethodName.fetchResponse.rawValue:
            let head = ReportedHead(params)
            headerBytes += head.bytes.count
            pending = head
            return nil
        default:
            return nil
        }
    }
}

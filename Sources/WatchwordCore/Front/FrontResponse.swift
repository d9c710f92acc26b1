public import WatchwordProtocol

/// The head of a response to a program, and the framing of its body (RFC 9112 section 6).
public struct FrontResponse: Sendable, Equatable {
    public enum Framing: Sendable, Equatable {
        /// The response has no body.
        case none
        /// The length of the body in bytes.
        case sized(Int)
        /// The body is sent by `chunk` and `lastChunk`.
        case chunked
        /// The end of the connection is the end of the body.
        case closeDelimited
        /// The connection switches to another protocol, whose bytes follow up to its end (RFC 9110 section 15.2.2).
        case switched
    }

    public let framing: Framing
    /// Whether the connection stays open after the response.
    public let keepsAlive: Bool
    /// The status line and the header section, with the empty line at their end.
    public let bytes: [UInt8]

    /// The fields that the front itself writes.
    private static let own: FieldNames = [
        "connection", "content-length", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
    ]

    /// - Parameters:
    ///   - reason: the reason phrase of the origin.
    ///   - headers: the fields of `FrontFields.response`. Fields for the framing are ignored, an invalid name drops its
    ///     field, and control characters in values become spaces. For status 101, with `Upgrade` of the origin's response.
    ///   - length: the length of the body in bytes; `nil` if it is not known yet.
    ///   - keepsAlive: whether the front can read another request on the connection.
    public init(
        status: Int, reason: String = "", headers: [HeaderField], length: Int?, to request: FrontRequest,
        keepsAlive: Bool = true
    ) {
        let framing = Self.framing(status: status, length: length, request)
        let isInterim = (100..<200).contains(status)
        let keepsAlive = keepsAlive && request.keepsAlive && framing != .closeDelimited && framing != .switched
        let isTunnel = request.isConnect && (200..<300).contains(status)
        let room = 256 + (request.upgrade?.utf8.count ?? 0) + reason.utf8.count
        bytes = HeadWriter.lines(headers, room: room) { head in
            head.write(
                line: "HTTP/1.1 ", isTunnel ? "\(status) Connection established" : Self.statusLine(status, reason))
            for field in headers where !Self.own.contains(field.name) && field.name.isToken { head.write(field) }
            // A response to HEAD, and 304, name the length of the body that they omit (RFC 9110 section 8.6).
            if let length, !isInterim, !isTunnel, status != 204 { head.write(line: "Content-Length: ", String(length)) }
            if framing == .chunked { head.write(line: "Transfer-Encoding: chunked") }
            if framing == .switched, let upgrade = request.upgrade {
                head.write(line: "Connection: Upgrade")
                head.write(line: "Upgrade: ", Self.sanitised(headers.firstValue(of: "Upgrade") ?? upgrade))
            } else if !isInterim, !isTunnel {
                if !keepsAlive {
                    head.write(line: "Connection: close")
                } else if request.minorVersion == 0 {
                    head.write(line: "Connection: keep-alive")
                }
            }
            head.write(line: "")
        }
        (self.framing, self.keepsAlive) = (framing, keepsAlive)
    }

    private static func framing(status: Int, length: Int?, _ request: FrontRequest) -> Framing {
        if status == 101, request.upgrade != nil { return .switched }
        let hasBody =
            request.method != "HEAD" && !(100..<200).contains(status) && status != 204 && status != 304
            && !(request.isConnect && (200..<300).contains(status))
        guard hasBody else { return .none }
        if let length { return length == 0 ? .none : .sized(length) }
        return request.minorVersion == 0 ? .closeDelimited : .chunked
    }

    /// Returns a part of a chunked body. An empty part gives no bytes, because an empty chunk would end the body.
    public static func chunk(_ part: [UInt8]) -> [UInt8] {
        part.isEmpty ? [] : Array("\(String(part.count, radix: 16))\r\n".utf8) + part + [0x0D, 0x0A]
    }

    /// Returns the end of a chunked body.
    public static func lastChunk(trailers: [HeaderField] = []) -> [UInt8] {
        HeadWriter.lines(trailers, room: 8) { end in
            end.write(line: "0")
            for field in trailers where field.name.isToken && !own.contains(field.name) { end.write(field) }
            end.write(line: "")
        }
    }

    /// The text with a space for each control character, so that it cannot end the line.
    static func sanitised(_ text: String) -> String {  // guard: front-line-break
        guard !text.isFieldText else { return text }
        return String(decoding: text.utf8.map { $0.isFieldCharacter ? $0 : 0x20 }, as: UTF8.self)
    }

    /// Returns the status with its reason phrase; an empty one is replaced by the usual one, if any.
    static func statusLine(_ status: Int, _ reason: String = "") -> String {
        let number = (100...999).contains(status) ? status : 502
        return "\(number) \(reason.isEmpty ? phrases[number] ?? "" : sanitised(reason))"
    }

    private static let phrases: [Int: String] = [
        100: "Continue", 101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content",
        206: "Partial Content", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
        307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
        404: "Not Found", 405: "Method Not Allowed", 407: "Proxy Authentication Required", 408: "Request Timeout",
        409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large",
        414: "URI Too Long", 416: "Range Not Satisfiable", 417: "Expectation Failed", 421: "Misdirected Request",
        422: "Unprocessable Content", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
        500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout", 505: "HTTP Version Not Supported", 508: "Loop Detected",
    ]
}

/// Writes the lines of a head.
private struct HeadWriter {
    private var texts: TextWriter

    /// - Parameter room: the number of bytes that are written at most besides `fields`.
    static func lines(_ fields: [HeaderField], room: Int, _ write: (inout HeadWriter) -> Void) -> [UInt8] {
        let capacity = fields.reduce(room) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        return [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            var writer = HeadWriter(texts: TextWriter(buffer))
            write(&writer)
            count = writer.texts.written.count
        }
    }

    mutating func write(_ field: HeaderField) {
        write(line: field.name, ": ", FrontResponse.sanitised(field.value))
    }

    /// Writes a line of up to three texts.
    mutating func write(line first: String, _ second: String = "", _ third: String = "") {
        texts.write(first)
        texts.write(header: second)
        texts.write(header: third)
        texts.write("\r\n")
    }
}

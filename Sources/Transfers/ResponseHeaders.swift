internal import WatchwordProtocol

/// The header lines of a response, which libcurl passes one at a time.
///
/// Interim responses (1xx) come first, each with a status line; trailers come after the body.
struct ResponseHeaders {
    private(set) var status = 0
    /// The reason phrase.
    private(set) var reason = ""
    private(set) var fields = HeaderBlock()
    /// The fields after the body.
    private(set) var trailers = HeaderBlock()
    private(set) var bytes = 0
    /// Whether the empty line after the fields was received: a body, another response or trailers may follow.
    private(set) var isComplete = false

    /// Whether a field that libcurl reads has a blank before its colon: libcurl takes it for another name.
    private var hasHiddenField = false

    private static let readByLibcurl = [
        "connection", "content-encoding", "content-length", "proxy-authenticate", "proxy-connection",
        "transfer-encoding", "upgrade", "www-authenticate",
    ]

    /// Whether the last line was a status line.
    private(set) var isAtStart = false

    private static let (usualBytes, usualFields) = (512, 16)

    /// The accepted content codings: both expand at most about a thousandfold. A kilobyte of Brotli or Zstandard, or of two codings
    /// applied in turn, may expand to gigabytes.
    static let codings = ["gzip", "deflate"]

    /// Whether the body has at most one content coding, and one of `codings`.
    var hasSafeContentCoding: Bool {
        givenCodings.count <= 1 && givenCodings.allSatisfy { Self.codings.contains($0) || $0 == "x-gzip" }
    }

    /// The content coding of the body that has to be decoded; `nil` if there is none, or none that is decoded.
    var coding: BodyDecoder.Coding? {
        guard hasSafeContentCoding, let given = givenCodings.first else { return nil }
        return given == "deflate" ? .deflate : .gzip
    }

    private var givenCodings: [String] {
        fields.values(of: "Content-Encoding").flatMap { field in
            field.split(separator: ",").map { $0.trimmingBlanks.lowercased() }.filter { name in
                name != "identity" && name != "none" && !name.isEmpty
            }
        }
    }

    /// Whether the body has a content coding.
    var isCoded: Bool {
        fields.values(of: "Content-Encoding").contains { !["", "identity", "none"].contains($0.lowercased()) }
    }

    /// Why the header section is malformed; `nil` if it is not. The length of a response and its redirect target must be
    /// unambiguous: recipients that use different fields would see different responses (RFC 9112 section 6.3).
    var problem: String? {
        if hasHiddenField { return "a blank follows the name of a field that decides its length or a login" }
        var length: Substring?
        for value in fields.values(of: "Content-Length") {
            // A fast path for the usual field.
            if length == nil, value.isNumber {
                length = value[...]
                continue
            }
            for part in value.split(separator: ",", omittingEmptySubsequences: false) {
                let number = part.trimmingBlanks
                guard number.isNumber else {
                    return "its Content-Length is not a number"
                }
                guard length == nil || length == number else {  // guard: framing-length-differs
                    return "it has several Content-Length fields that differ"
                }
                length = number
            }
        }
        // libcurl would take a larger one for no length (RFC 9110 section 8.6).
        if let length, Int64(length) == nil { return "its Content-Length is too large" }
        guard (300...399).contains(status), fields.values(of: "Location").count > 1 else { return nil }
        return "it has several Location fields"
    }

    /// Adds one line, which includes its line end. Returns `false` if the section is too large.
    mutating func append(_ line: UnsafeRawBufferPointer) -> Bool {
        bytes += line.count
        guard bytes <= EngineLimits.headerBytes else { return false }
        let text = line.trimmed
        isAtStart = false
        if isComplete || fields.isEmpty, text.starts(with: "HTTP/".utf8) {
            self = ResponseHeaders(status: Self.status(of: text), reason: Self.reason(of: text), bytes: bytes)
        } else if text.isEmpty {
            isComplete = true
        } else if isComplete {
            _ = Self.append(line, text, to: &trailers)
        } else {
            hasHiddenField = Self.append(line, text, to: &fields) || hasHiddenField
        }
        return true
    }

    init() {}

    private init(status: Int, reason: String, bytes: Int) {
        self.status = status
        self.reason = reason
        self.bytes = bytes
        isAtStart = true
        fields.reserve(bytes: Self.usualBytes, fields: Self.usualFields)
    }

    /// Appends the field of a line, or a folded line (RFC 9112 section 5.2). Returns whether libcurl does not recognize a field that
    /// it reads, because of a blank before the colon. From other fields the blank is removed (RFC 9112 section 5.1).
    private static func append(
        _ line: UnsafeRawBufferPointer, _ text: UnsafeRawBufferPointer, to fields: inout HeaderBlock
    ) -> Bool {
        let isIndented = line.first?.isBlank == true
        if isIndented, !fields.isEmpty {
            fields.continueLast(with: text)
            return false
        }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let name = text.part(..<colon).trimmed
        fields.append(name: name, value: text.part((colon + 1)...).trimmed)
        guard name.count < colon, !name.isEmpty, !isIndented else { return false }
        let text = String(header: name)
        return readByLibcurl.contains { $0.equalsIgnoringASCIICase(text) }
    }

    /// The three digits after the version (RFC 9112 section 4).
    private static func status(of line: UnsafeRawBufferPointer) -> Int {
        let digits = line.drop { $0 != 0x20 }.drop { $0 == 0x20 }.prefix(3)
        return digits.reduce(0) { $0 * 10 + ((0x30...0x39).contains($1) ? Int($1 - 0x30) : 0) }
    }

    /// The reason phrase, without control characters.
    private static func reason(of line: UnsafeRawBufferPointer) -> String {
        var start = 0
        for isBlank in [false, true, false, true] {
            while start < line.count, (line[start] == 0x20) == isBlank { start += 1 }
        }
        let text = line.part(start...)
        guard text.contains(where: { $0 < 0x20 || $0 >= 0x7F }) else { return String(header: text) }
        return String(header: text).filter { !$0.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F } }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func part(_ range: some RangeExpression<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[range.relative(to: self)])
    }

    /// The bytes without blanks and line ends on both sides.
    fileprivate var trimmed: UnsafeRawBufferPointer {
        var (start, end) = (0, count)
        while start < end, self[start].isBlank { start += 1 }
        while start < end, self[end - 1].isBlank { end -= 1 }
        return part(start..<end)
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0D || self == 0x0A }
}

extension StringProtocol {
    fileprivate var isNumber: Bool { !isEmpty && utf8.allSatisfy { (0x30...0x39).contains($0) } }
}

extension Substring {
    fileprivate var trimmingBlanks: Substring {
        var rest = self
        while let first = rest.utf8.first, first == 0x20 || first == 0x09 { rest = rest.dropFirst() }
        while let last = rest.utf8.last, last == 0x20 || last == 0x09 { rest = rest.dropLast() }
        return rest
    }
}

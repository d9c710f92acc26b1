internal import WatchwordProtocol

/// The line with the size of a chunk, without its line end (RFC 9112 section 7.1).
struct FrontChunk {
    /// The size of the data in bytes; 0 for the last chunk.
    let size: Int
    let extensionBytes: Int

    /// Digits of the largest size that is accepted.
    static let digits = 15

    init(_ line: UnsafeRawBufferPointer) throws(FrontRefusal) {
        let semicolon = UInt8(ascii: ";")
        let number = line.prefix { $0 != semicolon && !FrontFieldLine.isBlank($0) }
        let rest = line.dropFirst(number.count)
        // Blanks are read before an extension only (RFC 9112 section 7.1.1).
        guard rest.isEmpty || rest.drop(while: FrontFieldLine.isBlank).first == semicolon else { throw .chunk }
        guard !number.isEmpty, number.count <= Self.digits else { throw .chunk }
        var size = 0
        for digit in number {
            guard let value = Hexadecimal.value(of: digit) else { throw .chunk }  // guard: front-chunk-size
            size = size << 4 | Int(value)
        }
        guard size <= Limits.bodyBytes else { throw .bodySize }
        guard rest.allSatisfy(\.isFieldCharacter) else { throw .chunkExtension }
        self.size = size
        extensionBytes = rest.count
    }
}

/// The fields after a chunked body (RFC 9112 section 7.1.2).
struct FrontTrailers {
    private(set) var fields: [HeaderField] = []
    private(set) var byteCount = 0
    private var fieldCount = 0

    /// Fields that are not allowed in trailers, because they determine framing, routing or authentication (RFC 9110
    /// section 6.5.1). They are dropped.
    private static let dropped: FieldNames = [
        "authorization", "connection", "content-encoding", "content-length", "content-range", "content-type", "cookie",
        "expect", "host", "keep-alive", "location", "max-forwards", "origin", "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection", "range", "sec-fetch-site", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade",
        "via",
        "www-authenticate",
    ]

    /// Whether a field may be passed on as a trailer.
    static func allows(_ name: String) -> Bool { !dropped.contains(name) }  // guard: front-trailer-names

    mutating func add(_ line: UnsafeRawBufferPointer, byteCount: Int, _ limits: FrontLimits) throws(FrontRefusal) {
        self.byteCount += byteCount
        fieldCount += 1
        guard fieldCount <= limits.fields else { throw .fieldCount }
        let field = try FrontFieldLine(line)
        if Self.allows(field.name) { fields.append(field.field) }
    }
}

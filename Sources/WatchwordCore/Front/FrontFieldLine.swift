internal import WatchwordProtocol

/// One line of a header section, without its line end (RFC 9112 section 5).
struct FrontFieldLine {
    let name: String
    /// The value without surrounding white space; valid only as long as the bytes of the line.
    let valueBytes: UnsafeRawBufferPointer

    init(_ line: UnsafeRawBufferPointer) throws(FrontRefusal) {
        guard let first = line.first, !Self.isBlank(first) else { throw .fold }  // guard: front-fold
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw .fieldName }
        let nameBytes = line[..<colon]
        // guard: front-field-name
        guard !nameBytes.isEmpty, nameBytes.allSatisfy(\.isTokenCharacter) else { throw .fieldName }
        var (start, end) = (colon + 1, line.count)
        while start < end, Self.isBlank(line[start]) { start += 1 }
        while start < end, Self.isBlank(line[end - 1]) { end -= 1 }
        valueBytes = UnsafeRawBufferPointer(rebasing: line[start..<end])
        guard valueBytes.allSatisfy(\.isFieldCharacter) else { throw .fieldValue }
        name = String(decoding: nameBytes, as: UTF8.self)
    }

    /// Not for a field with a credential, whose value must not become a `String`.
    var field: HeaderField { HeaderField(name, String(header: valueBytes)) }

    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}

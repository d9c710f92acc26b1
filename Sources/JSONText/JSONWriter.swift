/// Writes JSON into memory of a fixed size. What does not fit is only counted, as snprintf(3) does it.
struct JSONWriter {
    private let destination: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ destination: UnsafeMutableRawBufferPointer) { self.destination = destination }

    mutating func append(_ value: JSON) {
        switch value.content {
        case .parsed(let node): append(node)
        case .null: append("null" as StaticString)
        case .boolean(let value): append(value ? "true" : "false" as StaticString)
        case .integer(let value): append(plain: "\(value)")
        case .real(let value): append(value)
        case .string(let text): append(text)
        case .utf8(let bytes): bytes.withUnsafeBytes { append(text: $0) }
        case .array(let elements): append(elements) { $0.append($1) }
        case .pairs(let pairs): append(pairs) { $0.append([$1.0, $1.1]) { $0.append($1) } }
        case .object(let members): append(members)
        }
    }

    private mutating func append<Element>(_ elements: [Element], each append: (inout JSONWriter, Element) -> Void) {
        self.append("[" as StaticString)
        for index in elements.indices {
            if index > 0 { self.append("," as StaticString) }
            append(&self, elements[index])
        }
        self.append("]" as StaticString)
    }

    private mutating func append(_ members: [(String, JSON?)]) {
        append("{" as StaticString)
        var separator: StaticString = ""
        for case (let name, let value?) in members {
            append(separator)
            append(name)
            append(":" as StaticString)
            append(value)
            separator = ","
        }
        append("}" as StaticString)
    }

    /// As jansson writes it, with fifteen significant digits: the shortest text for a number is the same if it has no more.
    private mutating func append(_ value: Double) {
        let text = "\(value)"
        let isPlain = value == 0 || (1e-4..<1e15).contains(value.magnitude)
        if isPlain && text.utf8.count <= 16 { append(plain: text) } else { append(Node(value)) }
    }

    private mutating func append(_ node: Node) {
        count += node.write(UnsafeMutableRawBufferPointer(rebasing: destination.dropFirst(count)))
    }

    // MARK: Strings

    private mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append(text: UnsafeRawBufferPointer($0)) }
    }

    /// - Parameter text: UTF-8.
    private mutating func append(text: UnsafeRawBufferPointer) {
        append("\"" as StaticString)
        var rest = text
        while let index = rest.firstToEscape {
            append(UnsafeRawBufferPointer(rebasing: rest[..<index]))
            appendEscape(of: rest[index])
            rest = UnsafeRawBufferPointer(rebasing: rest[(index + 1)...])
        }
        append(rest)
        append("\"" as StaticString)
    }

    private mutating func appendEscape(of byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): append("\\\"" as StaticString)
        case UInt8(ascii: "\\"): append("\\\\" as StaticString)
        case 0x08: append("\\b" as StaticString)
        case 0x09: append("\\t" as StaticString)
        case 0x0A: append("\\n" as StaticString)
        case 0x0C: append("\\f" as StaticString)
        case 0x0D: append("\\r" as StaticString)
        default: append(plain: (byte < 0x10 ? "\\u000" : "\\u00") + String(byte, radix: 16, uppercase: true))
        }
    }

    // MARK: Bytes

    mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { append(UnsafeRawBufferPointer($0)) }
    }

    private mutating func append(plain text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if count + bytes.count <= destination.count {
            UnsafeMutableRawBufferPointer(rebasing: destination[count...]).copyMemory(from: bytes)
        }
        count += bytes.count
    }
}

extension UnsafeRawBufferPointer {
    /// The place of the first byte that must not stand in a string as it is (RFC 8259 section 7).
    fileprivate var firstToEscape: Int? {
        var index = 0
        // Eight bytes at a time: most text has no such byte.
        while index + 8 <= count, !loadUnaligned(fromByteOffset: index, as: UInt64.self).holdsByteToEscape {
            index += 8
        }
        while index < count {
            let byte = self[index]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return index }
            index += 1
        }
        return nil
    }
}

extension UInt64 {
    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// Whether one of the eight bytes is below `limit`, which is 0x80 at most ("Determine if a word has a byte less than n" in
    /// Bit Twiddling Hacks).
    private func holdsByte(below limit: UInt64) -> Bool {
        (self &- Self.ones &* limit) & ~self & (Self.ones &* 0x80) != 0
    }

    fileprivate var holdsByteToEscape: Bool {
        holdsByte(below: 0x20) || (self ^ (Self.ones &* 0x22)).holdsByte(below: 1)
            || (self ^ (Self.ones &* 0x5C)).holdsByte(below: 1)
    }
}

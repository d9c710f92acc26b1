/// A value that is written into a message as it is, instead of becoming a tree first.
public protocol JSONWritable: Sendable {
    /// Writes one value. It is called again if the text did not fit.
    func write(to writer: inout JSONWriter)
}

/// Writes JSON into a buffer of fixed size. Like snprintf(3), it counts bytes that do not fit without writing them.
public struct JSONWriter {
    private let destination: UnsafeMutableRawBufferPointer
    private(set) var count = 0
    /// Whether the next member or element is the first one.
    private var isFirst = true

    init(_ destination: UnsafeMutableRawBufferPointer) { self.destination = destination }

    // MARK: Objects and arrays

    public mutating func beginObject() { begin(UInt8(ascii: "{")) }
    public mutating func endObject() { end(UInt8(ascii: "}")) }
    public mutating func beginArray() { begin(UInt8(ascii: "[")) }
    public mutating func endArray() { end(UInt8(ascii: "]")) }

    /// Writes the name of a member, whose value follows. It contains no character to escape.
    public mutating func name(_ name: StaticString) {
        separate()
        append(UInt8(ascii: "\""))
        append(name)
        append("\":" as StaticString)
    }

    /// Begins the next element of an array, whose value follows.
    public mutating func separate() {
        if !isFirst { append(UInt8(ascii: ",")) }
        isFirst = false
    }

    public mutating func member(_ name: StaticString, _ value: String) {
        self.name(name)
        append(value)
    }

    public mutating func member(_ name: StaticString, _ value: Int) {
        self.name(name)
        append(value)
    }

    /// - Parameter value: finite.
    public mutating func member(_ name: StaticString, _ value: Double) {
        self.name(name)
        append(value)
    }

    public mutating func member(_ name: StaticString, _ value: JSON) {
        self.name(name)
        append(value)
    }

    private mutating func begin(_ bracket: UInt8) {
        append(bracket)
        isFirst = true
    }

    private mutating func end(_ bracket: UInt8) {
        append(bracket)
        isFirst = false
    }

    // MARK: Values

    mutating func append(_ value: JSON) {
        switch value.content {
        case .parsed(let node): append(node)
        case .written(let value): value.write(to: &self)
        case .null: append("null" as StaticString)
        case .boolean(let value): append(value ? "true" : "false" as StaticString)
        case .integer(let value): append(value)
        case .real(let value): append(value)
        case .string(let text): append(text)
        case .array(let elements): append(elements)
        case .pairs(let pairs): append(pairs)
        case .object(let members): append(members)
        }
    }

    private mutating func append(_ elements: [JSON]) {
        beginArray()
        for element in elements {
            separate()
            append(element)
        }
        endArray()
    }

    private mutating func append(_ pairs: [(String, String)]) {
        beginArray()
        for (first, second) in pairs {
            separate()
            append(UInt8(ascii: "["))
            append(first)
            append(UInt8(ascii: ","))
            append(second)
            append(UInt8(ascii: "]"))
        }
        endArray()
    }

    private mutating func append(_ members: [(String, JSON?)]) {
        beginObject()
        for case (let name, let value?) in members {
            separate()
            append(name)
            append(UInt8(ascii: ":"))
            append(value)
        }
        endObject()
    }

    /// Formats numbers with at most one decimal place, such as times, directly, and others with jansson.
    private mutating func append(_ value: Double) {
        let tenths = (value * 10).rounded()
        if value.sign == .plus, tenths < 1e15, tenths / 10 == value {
            append(Int(tenths) / 10)
            append(UInt8(ascii: "."))
            append(Int(tenths) % 10)
        } else {
            append(Node(value))
        }
    }

    private mutating func append(_ value: Int) {
        if value < 0 { append(UInt8(ascii: "-")) }
        let magnitude = value.magnitude
        var unit: UInt = 1
        while magnitude / unit >= 10 { unit *= 10 }
        while unit > 0 {
            append(UInt8(ascii: "0") + UInt8(magnitude / unit % 10))
            unit /= 10
        }
    }

    private mutating func append(_ node: Node) {
        count += node.write(UnsafeMutableRawBufferPointer(rebasing: destination.dropFirst(count)))
    }

    // MARK: Strings

    public mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append(text: UnsafeRawBufferPointer($0)) }
    }

    /// - Parameter text: UTF-8.
    public mutating func append(text: UnsafeRawBufferPointer) {
        append(UInt8(ascii: "\""))
        var rest = text
        while let index = rest.firstToEscape {
            append(UnsafeRawBufferPointer(rebasing: rest[..<index]))
            appendEscape(of: rest[index])
            rest = UnsafeRawBufferPointer(rebasing: rest[(index + 1)...])
        }
        append(rest)
        append(UInt8(ascii: "\""))
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

    private mutating func append(_ byte: UInt8) {
        if count < destination.count { destination[count] = byte }
        count += 1
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if count + bytes.count <= destination.count {
            UnsafeMutableRawBufferPointer(rebasing: destination[count...]).copyMemory(from: bytes)
        }
        count += bytes.count
    }
}

extension UnsafeRawBufferPointer {
    /// The index of the first byte that must be escaped in a string (RFC 8259 section 7).
    fileprivate var firstToEscape: Int? {
        typealias Bytes = SIMD16<UInt8>
        var index = 0
        // Skip sixteen bytes at a time, because most text needs no escapes.
        while index + Bytes.scalarCount <= count {
            let bytes = loadUnaligned(fromByteOffset: index, as: Bytes.self)
            let needEscape =
                (bytes .< Bytes(repeating: 0x20)) .| (bytes .== Bytes(repeating: UInt8(ascii: "\"")))
                .| (bytes .== Bytes(repeating: UInt8(ascii: "\\")))
            if any(needEscape) { break }
            index += Bytes.scalarCount
        }
        if index + 8 <= count, !loadUnaligned(fromByteOffset: index, as: UInt64.self).hasByteToEscape { index += 8 }
        while index < count {
            let byte = self[index]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return index }
            index += 1
        }
        return nil
    }
}

extension UInt64 {
    /// Whether one of the eight bytes must be escaped, or is not ASCII. Subtracting from a byte below the subtrahend borrows into
    /// its highest bit.
    fileprivate var hasByteToEscape: Bool {
        let (ones, highest): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        func equalTo(_ byte: UInt8) -> UInt64 { (self ^ ones &* UInt64(byte)) &- ones }
        let control = self &- ones &* 0x20
        return (self | control | equalTo(UInt8(ascii: "\"")) | equalTo(UInt8(ascii: "\\"))) & highest != 0
    }
}

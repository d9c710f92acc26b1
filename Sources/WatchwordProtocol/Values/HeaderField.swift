/// One header field of a request or a response (RFC 9110 section 5).
public struct HeaderField: Sendable, Equatable {
    /// The name as written. Names compare without regard to case.
    public var name: String
    /// The value without surrounding white space. Bytes that are not UTF-8 are marked; see `String.init(header:)`.
    public var value: String

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether the name of the field is `other`, without regard to ASCII case (RFC 9110 section 5.1).
    @inlinable
    public func isNamed(_ other: String) -> Bool { name.equalsIgnoringASCIICase(other) }
}

extension [HeaderField] {
    /// Returns the values of all fields named `name`, in order.
    public func values(of name: String) -> [String] {
        // By index, because an iterator retains each field.
        indices.compactMap { self[$0].isNamed(name) ? self[$0].value : nil }
    }

    /// Returns the value of the first field named `name`.
    public func firstValue(of name: String) -> String? {
        indices.first { self[$0].isNamed(name) }.map { self[$0].value }
    }
}

extension String {
    /// Whether the text begins with `prefix`, without regard to the case of ASCII letters. Other characters compare exactly.
    public func hasPrefix(ignoringASCIICase prefix: String) -> Bool {
        guard utf8.count >= prefix.utf8.count else { return false }
        return withBytes { text in
            prefix.withBytes { prefix in
                prefix.indices.allSatisfy {
                    text[$0] == prefix[$0] || text[$0].asciiLowercased == prefix[$0].asciiLowercased
                }
            }
        }
    }

    /// Passes the UTF-8 bytes to `read`. Retains nothing, unlike `withUTF8`, which is mutating.
    @inlinable
    package func withBytes<Result>(_ read: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable(read) { return result }
        var copy = self
        return copy.withUTF8(read)
    }

    /// Joins texts in one step, which takes less time than appending them.
    package init(joining texts: String...) {
        self.init(unsafeUninitializedCapacity: texts.reduce(0) { $0 + $1.utf8.count }) { buffer in
            var writer = TextWriter(buffer)
            for text in texts { writer.write(text) }
            return writer.written.count
        }
    }
}

extension StringProtocol {
    /// Compares two names whose grammar allows only ASCII. Other characters compare exactly.
    @inlinable
    public func equalsIgnoringASCIICase(_ other: String) -> Bool {
        // Most names are excluded by their length or first letter.
        utf8.count == other.utf8.count && utf8.first?.asciiLowercased == other.utf8.first?.asciiLowercased
            && String(self).hasPrefix(ignoringASCIICase: other)
    }

    /// The text with the letters A to Z in lower case, and no other change.
    @inlinable
    public var asciiLowercased: String {
        var text = String(self)
        let isLowercased = text.withUTF8 { $0.allSatisfy { $0 == $0.asciiLowercased } }
        return isLowercased ? text : String(decoding: text.utf8.map(\.asciiLowercased), as: UTF8.self)
    }
}

extension UInt8 {
    /// The lower-case letter for A to Z; any other byte unchanged.
    @inlinable
    public var asciiLowercased: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}

/// Character classes of the HTTP grammars. All header fields run through them, so they do not search a list.
extension UInt8 {
    /// Whether the byte is a `tchar` (RFC 9110 section 5.6.2).
    package var isTokenCharacter: Bool {
        switch self {
        // ! # $ % & ' * + - . ^ _ ` | ~
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
        default: isAlphanumeric
        }
    }

    /// Whether the byte may occur in a `token68` (RFC 9110 section 11.2) or a Bearer token (RFC 6750 section 2.1). The
    /// `=` at the end is excluded.
    package var isToken68Character: Bool {
        switch self {
        // - . _ ~ + /
        case 0x2D, 0x2E, 0x5F, 0x7E, 0x2B, 0x2F: true
        default: isAlphanumeric
        }
    }

    /// Whether the byte may occur in a field value (RFC 9110 section 5.5): it is not a control character, or the tabulator.
    package var isFieldCharacter: Bool { self >= 0x20 && self != 0x7F || self == 0x09 }

    private var isAlphanumeric: Bool { (0x30...0x39).contains(self) || (0x61...0x7A).contains(self | 0x20) }
}

extension String {
    /// Whether the text is a `token` (RFC 9110 section 5.6.2).
    package var isToken: Bool {
        withBytes { !$0.isEmpty && $0.allSatisfy { $0.isTokenCharacter } }
    }

    /// Whether the text contains no line end or other control character, except for tabulators.
    package var isFieldText: Bool {
        withBytes { $0.allSatisfy { $0.isFieldCharacter } }
    }
}

/// Writes texts to memory that is large enough for all of them, which takes less time than appending them to an array or
/// a string.
package struct TextWriter {
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    private var count = 0

    package init(_ buffer: UnsafeMutableBufferPointer<UInt8>) { self.buffer = buffer }

    package var written: Slice<UnsafeMutableBufferPointer<UInt8>> { buffer[..<count] }

    package mutating func write(_ text: String) {
        text.withBytes { bytes in
            precondition(bytes.count <= buffer.count - count, "no room for a text")
            guard let start = bytes.baseAddress, let target = buffer.baseAddress else { return }
            (target + count).update(from: start, count: bytes.count)
            count += bytes.count
        }
    }

    /// Writes a part of a header section, with the bytes that were received.
    package mutating func write(header text: String) {
        guard text.isMarked else { return write(text) }
        text.withBytes { bytes in
            precondition(bytes.count <= buffer.count - count, "no room for a text")
            for byte in HeaderBytes(bytes) {
                buffer[count] = byte
                count += 1
            }
        }
    }
}

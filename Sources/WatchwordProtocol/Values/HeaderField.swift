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

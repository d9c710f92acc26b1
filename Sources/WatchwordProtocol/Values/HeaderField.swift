/// One header field of a request or a response (RFC 9110 section 5).
public struct HeaderField: Sendable, Equatable {
    /// As it was written; names compare without regard to case.
    public var name: String
    /// Without the white space around it. Bytes that are not UTF-8 are read as ISO 8859-1.
    public var value: String

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether the field is called `other`, by RFC 9110 section 5.1 without regard to ASCII case.
    public func isNamed(_ other: String) -> Bool { name.equalsIgnoringASCIICase(other) }
}

extension [HeaderField] {
    /// The values of all fields called `name`, in order.
    public func values(of name: String) -> [String] {
        compactMap { $0.isNamed(name) ? $0.value : nil }
    }

    /// The value of the first field called `name`.
    public func firstValue(of name: String) -> String? {
        first { $0.isNamed(name) }?.value
    }
}

extension StringProtocol {
    /// Compares two names that are ASCII by their grammar; other characters compare exactly.
    @inlinable
    public func equalsIgnoringASCIICase(_ other: some StringProtocol) -> Bool {
        let left = utf8
        let right = other.utf8
        guard left.count == right.count else { return false }
        return zip(left, right).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }

    /// With the letters A to Z made small, and nothing else changed.
    @inlinable
    public var asciiLowercased: String {
        let isLowercased = utf8.allSatisfy { $0 == $0.asciiLowercased }
        return isLowercased ? String(self) : String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self)
    }
}

extension UInt8 {
    /// The small letter of A to Z; any other byte as it is.
    @inlinable
    public var asciiLowercased: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}

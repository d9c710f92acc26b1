/// One header field of a request or a response (RFC 9110 section 5).
public struct HeaderField: Sendable, Equatable {
    /// The name as written. Names compare without regard to case.
    public var name: String
    /// The value without surrounding white space. Bytes that are not UTF-8 are decoded as ISO 8859-1.
    public var value: String

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether the name of the field is `other`, without regard to ASCII case (RFC 9110 section 5.1).
    public func isNamed(_ other: String) -> Bool {
        var (name, other) = (self.name, other)
        return name.withUTF8 { name in
            other.withUTF8 { other in
                name.count == other.count
                    && name.indices.allSatisfy { name[$0].asciiLowercased == other[$0].asciiLowercased }
            }
        }
    }
}

extension [HeaderField] {
    /// Returns the values of all fields named `name`, in order.
    public func values(of name: String) -> [String] {
        compactMap { $0.isNamed(name) ? $0.value : nil }
    }

    /// Returns the value of the first field named `name`.
    public func firstValue(of name: String) -> String? {
        first { $0.isNamed(name) }?.value
    }
}

extension StringProtocol {
    /// Compares two names whose grammar allows only ASCII. Other characters compare exactly.
    @inlinable
    public func equalsIgnoringASCIICase(_ other: some StringProtocol) -> Bool {
        let left = utf8
        let right = other.utf8
        guard left.count == right.count else { return false }
        return zip(left, right).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
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

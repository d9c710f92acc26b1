internal import Glibc
public import JSONText

/// Text that identifies something: a user, a realm, a domain, a host, a path. Values are equal only if their bytes are equal.
///
/// `String` compares by Unicode's canonical equivalence: `K` (U+212A, the Kelvin sign) equals `K`, and the two encodings of `é`
/// are equal. To a server, they are different accounts.
public struct ExactText: Sendable {
    /// The text, for messages and display. Do not use it for comparisons.
    public let string: String

    public init(_ text: some StringProtocol) { string = String(text) }

    /// The bytes that are compared.
    public var utf8: String.UTF8View { string.utf8 }

    public var isEmpty: Bool { string.isEmpty }

    /// The text with the letters A to Z in lower case, and no other change.
    public var asciiLowercased: ExactText { ExactText(string.asciiLowercased) }

    /// The text for display: shortened to 80 characters and safe for a terminal.
    public var shortened: String { string.shortened }

    public var json: JSON { .string(string) }

    /// Whether the bytes start with the bytes of `prefix`.
    public func hasPrefix(_ prefix: ExactText) -> Bool {
        var (text, prefix) = (string, prefix.string)
        return text.withUTF8 { text in prefix.withUTF8 { text.hasPrefix($0) } }
    }

    /// Whether the bytes end with the bytes of `suffix`.
    public func hasSuffix(_ suffix: ExactText) -> Bool {
        utf8.count >= suffix.utf8.count && utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }
}

extension ExactText: Hashable {
    public static func == (left: ExactText, right: ExactText) -> Bool {  // guard: identity-is-bytes
        left.string.withBytes { left in right.string.withBytes { left.count == $0.count && left.hasPrefix($0) } }
    }

    public func hash(into hasher: inout Hasher) {
        string.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(utf8.count)
    }
}

extension UnsafeBufferPointer<UInt8> {
    func hasPrefix(_ prefix: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let start = baseAddress, let other = prefix.baseAddress else { return prefix.isEmpty }
        return prefix.count <= count && memcmp(start, other, prefix.count) == 0
    }
}

extension ExactText: ExpressibleByStringInterpolation, CustomStringConvertible {
    public init(stringLiteral text: String) { string = text }

    public var description: String { string }
}

extension JSON {
    /// The value of a JSON string that identifies something.
    public var exactText: ExactText? { string.map { ExactText($0) } }
}

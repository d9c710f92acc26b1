public import JSONText

/// Text that identifies something: a user, a realm, a domain, a host, a path. Two are equal only if they are the same bytes.
///
/// `String` compares by Unicode's canonical equivalence, under which `K` (U+212A, the Kelvin sign) is `K`, and `é` has two
/// spellings that are one; to a server each of them is another account.
public struct ExactText: Sendable {
    /// The text, for messages and for people. It must not be compared.
    public let string: String

    public init(_ text: some StringProtocol) { string = String(text) }

    /// The bytes that count.
    public var utf8: String.UTF8View { string.utf8 }

    public var isEmpty: Bool { string.isEmpty }

    /// With the letters A to Z made small, and nothing else changed.
    public var asciiLowercased: ExactText { ExactText(string.asciiLowercased) }

    /// For people: the text cut to 80 characters and made harmless for a terminal.
    public var shortened: String { string.shortened }

    public var json: JSON { .string(string) }

    /// Whether the bytes start with those of `prefix`.
    public func hasPrefix(_ prefix: ExactText) -> Bool { utf8.starts(with: prefix.utf8) }

    /// Whether the bytes end with those of `suffix`.
    public func hasSuffix(_ suffix: ExactText) -> Bool {
        utf8.count >= suffix.utf8.count && utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }
}

extension ExactText: Hashable {
    public static func == (left: ExactText, right: ExactText) -> Bool {
        var (left, right) = (left.string, right.string)
        return left.withUTF8 { left in right.withUTF8 { left.count == $0.count && left.elementsEqual($0) } }
    }

    public func hash(into hasher: inout Hasher) {
        var text = string
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(utf8.count)
    }
}

extension ExactText: ExpressibleByStringInterpolation, CustomStringConvertible {
    public init(stringLiteral text: String) { string = text }

    public var description: String { string }
}

extension JSON {
    /// A string that identifies something.
    public var exactText: ExactText? { string.map { ExactText($0) } }
}

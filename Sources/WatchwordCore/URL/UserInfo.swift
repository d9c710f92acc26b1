public import WatchwordProtocol

/// User and password out of a URL (RFC 3986 section 3.2.1). They are used only after a challenge of that URL's origin.
public struct UserInfo: Sendable, Equatable {
    public var user: ExactText
    /// `nil` when the URL named only a user.
    public var password: Secret?

    /// Splits at the first colon and decodes both halves.
    /// - Throws: `FetchFailure` of kind `badURL`.
    public init(_ text: Secret) throws(FetchFailure) {
        let halves = text.withUnsafeBytes { bytes -> (user: [UInt8], password: Secret?)? in
            let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
            guard let user = Self.decoded(bytes[..<(colon ?? bytes.count)]) else { return nil }
            guard let colon else { return (user.withUnsafeBytes { Array($0) }, nil) }
            guard let password = Self.decoded(bytes[(colon + 1)...]) else { return nil }
            return (user.withUnsafeBytes { Array($0) }, password)
        }
        guard let halves, let user = String(validating: halves.user, as: UTF8.self) else {
            throw .badURL("User and password in the URL are not percent-encoded as they should be.")
        }
        self.user = ExactText(user)
        self.password = halves.password
    }

    /// `nil` for control characters, plain or encoded, for `\` and `@`, and for a `%` without two digits.
    private static func decoded(_ text: Slice<UnsafeRawBufferPointer>) -> Secret? {
        var isValid = true
        let secret = Secret(capacity: text.count) { destination in
            var count = 0
            var index = text.startIndex
            while index < text.endIndex {
                var byte = text[index]
                index += 1
                if byte == UInt8(ascii: "%") {
                    guard index + 1 < text.endIndex, let high = hexValue(text[index]),
                        let low = hexValue(text[index + 1])
                    else {
                        isValid = false
                        return count
                    }
                    byte = high << 4 | low
                    index += 2
                } else if byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "@") {
                    isValid = false
                }
                if byte < 0x20 || byte == 0x7F { isValid = false }
                destination[count] = byte
                count += 1
            }
            return count
        }
        return isValid ? secret : nil
    }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte.asciiLowercased {
        case 0x30...0x39: byte - 0x30
        case 0x61...0x66: byte.asciiLowercased - 0x61 + 10
        default: nil
        }
    }
}

/// Bytes as lower-case hexadecimal digits, two per byte.
package enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Returns the value of a digit, in either case; `nil` for another character.
    package static func value(of digit: UInt8) -> UInt8? {
        digits.firstIndex(of: digit.asciiLowercased).map { UInt8($0) }
    }

    /// Returns `nil` if `text` is not hexadecimal.
    package static func bytes(_ text: String) -> [UInt8]? {
        let values = text.utf8.map { value(of: $0) }
        guard values.count.isMultiple(of: 2), values.allSatisfy({ $0 != nil }) else { return nil }
        return stride(from: 0, to: values.count, by: 2).map { (values[$0] ?? 0) << 4 | (values[$0 + 1] ?? 0) }
    }
}

/// Random text from the random number generator of the system.
public enum RandomText {
    /// Returns 128 random bits as 32 hexadecimal digits, for unguessable IDs and client nonces (RFC 7616 section 5.12).
    public static func make128Bits() -> String {
        var generator = SystemRandomNumberGenerator()
        return hexadecimal(generator.next()) + hexadecimal(generator.next())
    }

    private static func hexadecimal(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

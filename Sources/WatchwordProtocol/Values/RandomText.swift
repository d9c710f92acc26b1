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

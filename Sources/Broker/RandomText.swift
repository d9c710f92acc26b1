/// Random text from the system's generator.
enum RandomText {
    /// 128 bits as 32 hexadecimal digits: enough that nobody guesses an id or a client nonce (RFC 7616 section 5.12).
    static func make128Bits() -> String {
        var generator = SystemRandomNumberGenerator()
        return hexadecimal(generator.next()) + hexadecimal(generator.next())
    }

    private static func hexadecimal(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

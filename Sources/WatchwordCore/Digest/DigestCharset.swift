internal import WatchwordProtocol

/// The encoding of user and password (RFC 7616 section 4).
///
/// RFC 7616 does not say what servers without `charset=UTF-8` expect. They get UTF-8 as well, as from curl and as with
/// Basic, unless the configuration lists them for ISO 8859-1. There, text with other characters is sent in UTF-8.
enum DigestCharset: Sendable {
    case utf8, unstated, latin1

    /// `UTF-8`, compared without case, is the only valid value (RFC 7616 section 3.3); any other is ignored.
    init(name: String?) { self = name?.equalsIgnoringASCIICase("UTF-8") == true ? .utf8 : .unstated }

    /// Returns user and password in one encoding, or `nil` if the user name cannot be sent: a quoted string must not
    /// contain control characters (RFC 9110 section 5.6.4), and `username*` is sent only to servers that send a
    /// charset.
    func bytes(of credential: LoginCredential) -> (user: [UInt8], password: Secret)? {
        guard self != .utf8 else { return (Array(credential.user.utf8), credential.secret) }
        let scalars = credential.user.string.unicodeScalars
        guard scalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else { return nil }
        if self == .latin1, scalars.allSatisfy({ $0.value <= 0xFF }), let password = Self.latin1(of: credential.secret)
        {
            return (scalars.map { UInt8(truncatingIfNeeded: $0.value) }, password)
        }
        return (Array(credential.user.utf8), credential.secret)
    }

    /// Converts a password from UTF-8. Returns `nil` if it has characters beyond U+00FF.
    static func latin1(of password: Secret) -> Secret? {
        try? Secret(capacity: password.count) { try writeLatin1(of: password, into: $0) }
    }

    /// In UTF-8, the characters up to U+00FF are one byte, or two of which the first is C2 or C3.
    private static func writeLatin1(of text: Secret, into latin1: UnsafeMutableRawBufferPointer) throws -> Int {
        try text.withUnsafeBytes { bytes in
            var count = 0
            var index = 0
            while index < bytes.count {
                var byte = bytes[index]
                if byte >= 0x80 {
                    index += 1
                    guard byte & 0xFE == 0xC2, index < bytes.count, bytes[index] & 0xC0 == 0x80 else {
                        throw NotLatin1()
                    }
                    byte = byte << 6 | bytes[index] & 0x3F
                }
                latin1[count] = byte
                count += 1
                index += 1
            }
            return count
        }
    }

    private struct NotLatin1: Error {}
}

extension String {
    /// The value of a parameter with `*` (RFC 8187 section 3.2.1, `ext-value`).
    var asExtendedValue: String {
        var result = "UTF-8''"
        for byte in utf8 {
            if byte.isAttributeCharacter {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                result += byte < 16 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return result
    }
}

extension UInt8 {
    /// `attr-char`: the characters of a token, except those with a meaning in an `ext-value`.
    fileprivate var isAttributeCharacter: Bool {
        isTokenCharacter && self != UInt8(ascii: "*") && self != UInt8(ascii: "'") && self != UInt8(ascii: "%")
    }
}

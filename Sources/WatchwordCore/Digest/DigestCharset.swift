internal import WatchwordProtocol

/// How user and password become bytes (RFC 7616 section 4).
///
/// A server that says `charset=UTF-8` gets UTF-8. RFC 7616 leaves open what a server that says nothing expects; it is taken
/// for one of RFC 2617, and gets ISO 8859-1. What that cannot hold goes as UTF-8, which is all that such a server can have
/// meant; neon and Chromium do the same.
enum DigestCharset: Sendable {
    case utf8, unstated

    /// Section 3.3: `UTF-8` without regard to case is the only value; any other one is as good as none.
    init(name: String?) { self = name?.equalsIgnoringASCIICase("UTF-8") == true ? .utf8 : .unstated }

    /// Both in one encoding. `nil` when the name cannot be sent: control characters fit in no quoted string (RFC 9110 section
    /// 5.6.4), and only a server that speaks of a charset knows another way.
    func bytes(of credential: LoginCredential) -> (user: [UInt8], password: Secret)? {
        if self == .unstated {
            let scalars = credential.user.string.unicodeScalars
            guard scalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else { return nil }
            if scalars.allSatisfy({ $0.value <= 0xFF }), let password = Self.latin1(of: credential.secret) {
                return (scalars.map { UInt8(truncatingIfNeeded: $0.value) }, password)
            }
        }
        return (Array(credential.user.utf8), credential.secret)
    }

    /// `nil` when the password, which is in UTF-8, has other characters.
    static func latin1(of password: Secret) -> Secret? {
        try? Secret(capacity: password.count) { try writeLatin1(of: password, into: $0) }
    }

    /// The characters up to U+00FF are one byte in UTF-8, or two of which the first is C2 or C3.
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
    /// As the value of a parameter with `*` (RFC 5987 section 3.2.1, `ext-value`).
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
    /// `attr-char`: a token's characters without those that mean something in an `ext-value`.
    fileprivate var isAttributeCharacter: Bool {
        isTokenCharacter && self != UInt8(ascii: "*") && self != UInt8(ascii: "'") && self != UInt8(ascii: "%")
    }
}

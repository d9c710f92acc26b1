internal import WatchwordProtocol

/// How user and password become bytes (RFC 7616 section 4).
///
/// A server that says `charset=UTF-8` gets UTF-8. RFC 7616 leaves open what a server that says nothing expects; it is taken
/// for one of RFC 2617, and gets ISO 8859-1. What that cannot hold is not sent at all: a guess would cost one of the few
/// attempts that the server allows, and look like a wrong password.
enum DigestCharset: Sendable {
    case utf8, latin1

    /// Section 3.3: `UTF-8` without regard to case is the only value; any other one is as good as none.
    init(name: String?) { self = name?.equalsIgnoringASCIICase("UTF-8") == true ? .utf8 : .latin1 }

    func canCarry(_ credential: LoginCredential) -> Bool {
        bytes(of: credential.user) != nil && bytes(of: credential.secret) != nil
    }

    /// `nil` when the name cannot be sent: control characters fit in no quoted string (RFC 9110 section 5.6.4).
    func bytes(of user: ExactText) -> [UInt8]? {
        switch self {
        case .utf8: return Array(user.utf8)
        case .latin1:
            let isFitting = user.string.unicodeScalars.allSatisfy {
                (0x20...0xFF).contains($0.value) && $0.value != 0x7F
            }
            return isFitting ? user.string.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } : nil
        }
    }

    /// `nil` when the password, which is in UTF-8, cannot be sent.
    func bytes(of password: Secret) -> Secret? {
        switch self {
        case .utf8: password
        case .latin1: try? Secret(capacity: password.count) { try Self.writeLatin1(of: password, into: $0) }
        }
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

public import WatchwordProtocol

/// The user and password of a URL (RFC 3986 section 3.2.1). They are used only to answer a challenge from the URL's
/// origin.
public struct UserInfo: Sendable, Equatable {
    public var user: ExactText
    /// `nil` if the URL has only a user.
    public var password: Secret?

    /// Splits at the first colon and percent-decodes both parts.
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
            throw .badURL("malformed user or password in the URL; percent-encode special characters")
        }
        self.user = ExactText(user)
        self.password = halves.password
    }

    /// Returns `nil` for control characters, plain or encoded, for an unencoded `\` or `@`, and for a `%` without two
    /// hexadecimal digits.
    private static func decoded(_ text: Slice<UnsafeRawBufferPointer>) -> Secret? {
        guard !text.contains(where: { $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "@") }),
            let secret = Secret(percentDecoding: text),
            !secret.withUnsafeBytes({ $0.contains { $0 < 0x20 || $0 == 0x7F } })
        else { return nil }
        return secret
    }
}

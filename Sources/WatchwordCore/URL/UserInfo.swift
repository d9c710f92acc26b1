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
        guard !text.contains(where: { $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "@") }),
            let secret = Secret(percentDecoding: text),
            !secret.withUnsafeBytes({ $0.contains { $0 < 0x20 || $0 == 0x7F } })
        else { return nil }
        return secret
    }
}

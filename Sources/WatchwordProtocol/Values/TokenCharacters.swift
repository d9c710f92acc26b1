/// Character classes of the HTTP grammars.
extension UInt8 {
    /// Whether the byte is a `tchar` (RFC 9110 section 5.6.2).
    package var isTokenCharacter: Bool { isAlphanumeric || Self.tokenPunctuation.contains(self) }

    /// Whether the byte may occur in a `token68` (RFC 9110 section 11.2) or a Bearer token (RFC 6750 section 2.1). The
    /// `=` at the end is excluded.
    package var isToken68Character: Bool { isAlphanumeric || Self.token68Punctuation.contains(self) }

    private var isAlphanumeric: Bool { (0x30...0x39).contains(self) || (0x61...0x7A).contains(self | 0x20) }

    private static let tokenPunctuation = Array("!#$%&'*+-.^_`|~".utf8)
    private static let token68Punctuation = Array("-._~+/".utf8)
}

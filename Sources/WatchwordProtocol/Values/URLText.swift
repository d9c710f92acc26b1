internal import JSONText

/// Separates the user information from a URL before the URL becomes a `String`.
public enum URLText {
    /// Returns the URL without user information and its `@`, and the user information, if any.
    ///
    /// The text is not validated: a text that is not a URL is returned unchanged, for the parser to refuse.
    public static func split(_ text: Secret) -> (url: String, userInfo: Secret?) {
        text.withUnsafeBytes { bytes in
            guard let authority = authority(of: bytes),
                let at = bytes[authority].lastIndex(of: UInt8(ascii: "@"))
            else { return (String(decoding: bytes, as: UTF8.self), nil) }
            let userInfo = UnsafeRawBufferPointer(rebasing: bytes[authority.lowerBound..<at])
            let url =
                String(decoding: bytes[..<authority.lowerBound], as: UTF8.self)
                + String(decoding: bytes[(at + 1)...], as: UTF8.self)
            return (url, Secret(copying: userInfo))
        }
    }

    /// Returns the authority, between `//` and the next `/`, `?` or `#` (RFC 3986 section 3.2).
    private static func authority(of bytes: UnsafeRawBufferPointer) -> Range<Int>? {
        let slash = UInt8(ascii: "/")
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon + 2 < bytes.count,
            bytes[colon + 1] == slash, bytes[colon + 2] == slash
        else { return nil }
        let start = colon + 3
        let end = bytes[start...].firstIndex { $0 == slash || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        return start..<(end ?? bytes.count)
    }

    /// The inverse of `split`, as a JSON string. May contain a password: serialize it with `JSON.write(_:)`.
    static func joined(_ url: String, _ userInfo: Secret?) -> JSON {
        guard let userInfo, let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://") else {
            return .string(url)
        }
        let start = url.index(colon, offsetBy: 3)
        let whole = Secret(joining: [.text(String(url[..<start])), .secret(userInfo), .text("@\(url[start...])")])
        return whole.withUnsafeBytes { JSON.string(secret: $0) } ?? .string(url)
    }
}

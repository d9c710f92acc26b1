internal import WatchwordProtocol

/// The token of a front, which programs send as the password of `Proxy-Authorization: Basic` (RFC 7617 section 2).
enum FrontToken {
    /// Whether the value of `Proxy-Authorization` contains `token`, with any user name. The comparison takes constant time.
    static func isValid(_ field: Secret?, token: Secret) -> Bool {  // guard: front-token
        guard let field, !token.isEmpty, let password = password(of: field) else { return false }
        return password == token
    }

    private static func password(of field: Secret) -> Secret? {
        field.withUnsafeBytes { bytes in
            let scheme = bytes.prefix { $0 != 0x20 }
            guard scheme.map(\.asciiLowercased).elementsEqual("basic".utf8) else { return nil }
            let encoded = bytes.dropFirst(scheme.count).drop { $0 == 0x20 }
            guard var plain = Base64.decode(UnsafeRawBufferPointer(rebasing: encoded)) else { return nil }
            defer { plain.withUnsafeMutableBytes(WipingBuffer.wipe) }
            guard let colon = plain.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            return plain.withUnsafeBytes { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[(colon + 1)...])) }
        }
    }
}

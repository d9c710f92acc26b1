internal import WatchwordCore
internal import WatchwordProtocol

/// Encodes text for libcurl's NTLM, which widens each byte to UTF-16: correct for ISO 8859-1, wrong for UTF-8.
enum NTLMText {
    /// - Throws: `TransferFailure` with cause `charactersUnsupported`.
    static func name(_ text: String) throws(TransferFailure) -> Secret {
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value), byte != 0 else { throw unsupported }
            // The NTLMv2 response is computed from the name in upper case, and libcurl converts only ASCII letters.
            let isSmall = (0xE0...0xFE).contains(byte) && byte != 0xF7
            bytes.append(isSmall ? byte - 0x20 : byte)
        }
        return bytes.withUnsafeBytes { Secret(copying: $0) }
    }

    /// - Parameter text: UTF-8.
    /// - Throws: `TransferFailure` with cause `charactersUnsupported`.
    static func password(_ text: Secret) throws(TransferFailure) -> Secret {
        var isRepresentable = true
        let bytes = Secret(capacity: text.count) { buffer in
            text.withUnsafeBytes { source in
                var (index, count) = (0, 0)
                while index < source.count {
                    let byte = source[index]
                    let isPair = byte == 0xC2 || byte == 0xC3
                    if isPair && index + 1 < source.count && source[index + 1] & 0xC0 == 0x80 {
                        buffer[count] = (byte & 0x03) << 6 | source[index + 1] & 0x3F
                        index += 2
                    } else {
                        if byte >= 0x80 { isRepresentable = false }
                        buffer[count] = byte
                        index += 1
                    }
                    count += 1
                }
                return count
            }
        }
        guard isRepresentable else { throw unsupported }
        return bytes
    }

    private static var unsupported: TransferFailure {
        TransferFailure(
            .internalError,
            "user name, domain or password for NTLM contains characters outside ISO 8859-1, which libcurl cannot send; "
                + "use another scheme",
            cause: .charactersUnsupported)
    }
}

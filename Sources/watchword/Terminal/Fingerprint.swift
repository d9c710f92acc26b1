import WatchwordProtocol

/// Formats of a SHA-256 fingerprint.
enum Fingerprint {
    static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// Returns `nil` if `hexadecimal` is not hexadecimal.
    static func bytes(_ hexadecimal: String) -> [UInt8]? {
        let digits = hexadecimal.compactMap(\.hexDigitValue)
        guard digits.count == hexadecimal.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// Returns the fingerprint as `AB:CD:…`, as openssl and browsers show it.
    static func withColons(_ hexadecimal: String) -> String {
        guard let bytes = bytes(hexadecimal) else { return hexadecimal.shortened }
        return bytes.map { Self.hexadecimal([$0]).uppercased() }.joined(separator: ":")
    }

    /// Returns the fingerprint in the form of `--pinnedpubkey`; `nil` if `hexadecimal` is not hexadecimal.
    static func pin(_ hexadecimal: String) -> String? {
        bytes(hexadecimal).map { bytes in "sha256//" + bytes.withUnsafeBytes { Base64.encode($0) } }
    }
}

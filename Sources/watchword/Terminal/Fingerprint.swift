import WatchwordProtocol

/// Formats of a SHA-256 fingerprint.
enum Fingerprint {
    /// Returns the fingerprint as `AB:CD:…`, as openssl and browsers show it.
    static func withColons(_ hexadecimal: String) -> String {
        guard let bytes = Hexadecimal.bytes(hexadecimal) else { return hexadecimal.shortened }
        return bytes.map { Hexadecimal.text([$0]).uppercased() }.joined(separator: ":")
    }

    /// Returns the fingerprint in the form of `--pinnedpubkey`; `nil` if `hexadecimal` is not hexadecimal.
    static func pin(_ hexadecimal: String) -> String? {
        Hexadecimal.bytes(hexadecimal).map { bytes in "sha256//" + bytes.withUnsafeBytes { Base64.encode($0) } }
    }
}

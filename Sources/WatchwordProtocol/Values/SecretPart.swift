/// A part of a longer secret, such as a header field: public text, or a secret.
package enum SecretPart: Sendable {
    case text(String)
    /// Text in another encoding, or a body.
    case bytes([UInt8])
    case secret(Secret)

    package func withUnsafeBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        switch self {
        case .text(var text): text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
        case .bytes(let bytes): bytes.withUnsafeBytes { body($0) }
        case .secret(let secret): secret.withUnsafeBytes { body($0) }
        }
    }

    fileprivate var count: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .secret(let secret): secret.count
        }
    }
}

extension Secret {
    /// Concatenates the parts.
    package init(joining parts: [SecretPart]) {
        self.init(capacity: parts.reduce(0) { $0 + $1.count }) { destination in
            var count = 0
            for part in parts {
                part.withUnsafeBytes { bytes in
                    UnsafeMutableRawBufferPointer(rebasing: destination[count...]).copyMemory(from: bytes)
                    count += bytes.count
                }
            }
            return count
        }
    }
}

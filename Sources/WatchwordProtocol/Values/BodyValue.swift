public import JSONText

/// Bytes as a JSON value: `{"type":"string"|"base64","value":…}`.
public final class BodyValue: Sendable {
    /// Up to this size, the growth by JSON escapes is not limited.
    private static let shortBytes = 4096

    private let bytes: [UInt8]
    private let isText: Bool

    /// The body is written as a string if the bytes are UTF-8, otherwise in base64. It is also written in base64 if JSON
    /// escapes would enlarge the bytes by more than half, because a message could become six times as large as its body.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
        isText =
            bytes.withUnsafeBytes(Self.isCompactWhenEscaped) && (try? UTF8Span(validating: bytes.span)) != nil
    }

    public static func json(_ bytes: [UInt8]) -> JSON { .written(BodyValue(bytes)) }

    private static func isCompactWhenEscaped(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if bytes.count <= shortBytes { return true }
        var growth = 0
        for byte in bytes {
            switch byte {
            case 0x08, 0x09, 0x0A, 0x0C, 0x0D, UInt8(ascii: "\""), UInt8(ascii: "\\"): growth += 1
            case ..<0x20: growth += 5
            default: continue
            }
        }
        return growth <= bytes.count / 2
    }

    /// Returns `nil` if `json` is not such a value.
    public static func bytes(_ json: JSON) -> [UInt8]? {
        switch json["type"]?.string {
        case "string": json["value"]?.withUTF8 { Array($0) }
        case "base64": json["value"]?.withUTF8 { Base64.decode($0) } ?? nil
        default: nil
        }
    }
}

extension BodyValue: JSONWritable {
    public func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("type", isText ? "string" : "base64" as String)
        writer.name("value")
        bytes.withUnsafeBytes { isText ? writer.append(text: $0) : writer.append(Base64.encode($0)) }
        writer.endObject()
    }
}

/// Base64 with the standard alphabet and padding (RFC 4648 section 4).
public enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")

    /// Returns the size of the encoding of `count` bytes.
    public static func encodedCount(_ count: Int) -> Int { (count + 2) / 3 * 4 }

    /// Writes the encoding of `bytes` at the start of `destination`, which has room for `encodedCount`.
    public static func encode(_ bytes: UnsafeRawBufferPointer, into destination: UnsafeMutableRawBufferPointer) {
        var target = 0
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = min(3, bytes.count - start)
            var bits = UInt32(bytes[start]) << 16
            if group > 1 { bits |= UInt32(bytes[start + 1]) << 8 }
            if group > 2 { bits |= UInt32(bytes[start + 2]) }
            for position in 0..<4 {
                let index = Int(bits >> (18 - 6 * UInt32(position))) & 63
                destination[target] = position <= group ? alphabet[index] : padding
                target += 1
            }
        }
    }

    public static func encode(_ bytes: UnsafeRawBufferPointer) -> String {
        let count = encodedCount(bytes.count)
        return String(unsafeUninitializedCapacity: count) { text in
            encode(bytes, into: UnsafeMutableRawBufferPointer(text))
            return count
        }
    }

    /// Returns `nil` for any text that `encode` does not produce.
    public static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard text.count.isMultiple(of: 4) else { return nil }
        let paddingCount = text.reversed().prefix { $0 == padding }.count
        guard paddingCount <= 2 else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(text.count / 4 * 3)
        var bits: UInt32 = 0
        var digits = 0
        for byte in text.dropLast(paddingCount) {
            guard let digit = value(of: byte) else { return nil }
            bits = bits << 6 | UInt32(digit)
            digits += 1
            if digits == 4 {
                result += [UInt8(bits >> 16 & 0xFF), UInt8(bits >> 8 & 0xFF), UInt8(bits & 0xFF)]
                (bits, digits) = (0, 0)
            }
        }
        return finish(result, bits: bits, digits: digits)
    }

    /// Appends the last group. Its unused bits must be zero.
    private static func finish(_ whole: [UInt8], bits: UInt32, digits: Int) -> [UInt8]? {
        switch digits {
        case 0: whole
        case 2: bits & 0xF == 0 ? whole + [UInt8(bits >> 4 & 0xFF)] : nil
        case 3: bits & 0x3 == 0 ? whole + [UInt8(bits >> 10 & 0xFF), UInt8(bits >> 2 & 0xFF)] : nil
        default: nil
        }
    }

    private static func value(of byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}

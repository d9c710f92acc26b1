/// Dot segments that `FetchURL` does not resolve, but some servers: with an encoded slash or backslash, as in `..%2Fadmin`,
/// encoded twice, as in `%252e%252e/admin`, or with a parameter, as in `..;/admin`. Their request for a path below `/v1` can reach
/// a resource elsewhere.
public enum HiddenSegments {
    /// The number of times that a server may decode a path.
    private static let decodings = 3

    /// Whether a server might find a segment `..` in the path. Also returns `true` for a path that is encoded more often.
    public static func leadUp(in path: ExactText) -> Bool {
        guard
            path.utf8.contains(where: { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: "\\") }
            )
        else {
            return false
        }
        var bytes = Array(path.utf8)
        for _ in 0...decodings {
            if hasDoubleDot(bytes) { return true }
            let decoded = decoded(bytes)
            if decoded == bytes { return false }
            bytes = decoded
        }
        return true
    }

    private static func hasDoubleDot(_ bytes: [UInt8]) -> Bool {
        bytes.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }.contains { segment in
            segment.prefix { $0 != UInt8(ascii: ";") }.elementsEqual("..".utf8)
        }
    }

    private static func decoded(_ bytes: [UInt8]) -> [UInt8] {
        var (result, index) = ([UInt8](), 0)
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let value = Hexadecimal.bytes(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self))
            {
                result += value
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }
}

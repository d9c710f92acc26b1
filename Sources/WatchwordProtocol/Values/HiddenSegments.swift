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
        guard let readings = readings(of: path) else { return true }
        return readings.contains { hasDoubleDot($0) }
    }

    /// Whether every server finds the same segments in the path, which is as it was sent: none that could be a dot segment, no
    /// further slash after decoding, and no text that may be decoded in several ways. If so, `isExpected` is also asked for each
    /// text that a server may decode it to.
    public static func readTheSame(in path: ExactText, isExpected: ([UInt8]) -> Bool) -> Bool {
        guard path.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), hasValidEscapes(path),
            let readings = readings(of: path)
        else { return false }
        let slashes = path.utf8.count { $0 == UInt8(ascii: "/") }
        return readings.allSatisfy { reading in
            // Overlong forms of a character are not valid.
            String(validating: reading, as: UTF8.self) != nil
                && reading.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\\") }
                && reading.count { $0 == UInt8(ascii: "/") } == slashes
                && !segments(of: reading).contains(where: mayBeDots) && isExpected(reading)
        }
    }

    /// Returns the path, and what it becomes each time that it is decoded; `nil` if it is encoded more often than servers decode.
    private static func readings(of path: ExactText) -> [[UInt8]]? {
        var readings = [Array(path.utf8)]
        for _ in 0...decodings {
            let decoded = decoded(readings[readings.count - 1])
            if decoded == readings[readings.count - 1] { return readings }
            readings.append(decoded)
        }
        return nil
    }

    private static func hasDoubleDot(_ bytes: [UInt8]) -> Bool {
        segments(of: bytes).contains { $0.elementsEqual("..".utf8) }
    }

    /// Whether a segment consists of dots and of blanks, which some servers ignore.
    private static func mayBeDots(_ segment: ArraySlice<UInt8>) -> Bool {
        segment.contains(UInt8(ascii: ".")) && segment.allSatisfy { $0 == UInt8(ascii: ".") || $0 == 0x20 }
    }

    /// The segments without their parameters.
    private static func segments(of bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        bytes.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }.map { segment in
            segment.prefix { $0 != UInt8(ascii: ";") }
        }
    }

    private static func hasValidEscapes(_ path: ExactText) -> Bool {
        let parts = path.utf8.split(separator: UInt8(ascii: "%"), omittingEmptySubsequences: false)
        return parts.dropFirst().allSatisfy { part in
            part.count >= 2 && Hexadecimal.bytes(String(decoding: part.prefix(2), as: UTF8.self)) != nil
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

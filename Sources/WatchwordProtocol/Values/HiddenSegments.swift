/// Dot segments that `FetchURL` does not resolve, but some servers: with an encoded slash or backslash, as in `..%2Fadmin`,
/// encoded twice, as in `%252e%252e/admin`, or with a parameter, as in `..;/admin`. Their request for a path below `/v1` can reach
/// a resource elsewhere.
public enum HiddenSegments {
    /// The number of times that a server may decode a path.
    private static let decodings = 3

    /// Returns the segments of the path as servers may read them: of each text of `readings`, without parameters and empty
    /// segments, in normal form (`normal`), and with their dot segments resolved as well. `nil` if the path is encoded more
    /// often than servers decode.
    public static func segmentReadings(of path: ExactText) -> [[[UInt8]]]? {
        readings(of: path)?.flatMap { text in
            let segments = segments(of: text).map { normal($0) }.filter { !$0.isEmpty && $0 != [UInt8(ascii: ".")] }
            let resolved = segments.reduce(into: [[UInt8]]()) { found, segment in
                if segment == Array("..".utf8) { _ = found.popLast() } else { found.append(segment) }
            }
            return segments == resolved ? [segments] : [segments, resolved]  // guard: path-resolved-readings
        }
    }

    /// Whether every server reads the path in the same way.
    public static func isPlain(_ path: ExactText) -> Bool {
        path.string.withBytes { bytes in
            if bytes.first == UInt8(ascii: ".") { return false }
            var previous = UInt8(ascii: " ")
            for byte in bytes {
                switch byte {
                case UInt8(ascii: "%"), UInt8(ascii: ";"), UInt8(ascii: "\\"), 0x80...: return false
                case UInt8(ascii: "/"), UInt8(ascii: "."): if previous == UInt8(ascii: "/") { return false }
                default: break
                }
                previous = byte
            }
            return true
        }
    }

    /// Returns the normal form of a part of a path, in which equivalent spellings are equal: characters that need no
    /// percent-encoding are decoded, those outside ASCII are encoded, and hexadecimal digits are in upper case (RFC 3986
    /// section 6.2.2, RFC 3987 section 3.1).
    static func normal(_ text: some Collection<UInt8>) -> [UInt8] {
        guard text.contains(where: { $0 == UInt8(ascii: "%") || $0 >= 0x80 }) else { return Array(text) }
        let bytes = Array(text)
        var (result, index) = ([UInt8](), 0)
        while index < bytes.count {
            guard let value = encodedByte(bytes, at: index) else {
                result += bytes[index] < 0x80 ? [bytes[index]] : bytes[index].percentEncoded
                index += 1
                continue
            }
            result +=
                value.isUnreserved ? [value] : [bytes[index]] + bytes[(index + 1)...(index + 2)].map(\.asciiUppercased)
            index += 3
        }
        return result
    }

    /// Whether a server might find a segment `.` or `..` in the path. Also returns `true` for a path that is encoded more often.
    public static func hasDots(in path: ExactText) -> Bool {
        guard let readings = readings(of: path) else { return true }
        return readings.contains { reading in
            segments(of: reading).contains { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }
        }
    }

    /// Whether a server might find a segment `..` in the path. Also returns `true` for a path that is encoded more often.
    public static func leadUp(in path: ExactText) -> Bool {
        if isPlain(path) { return false }
        guard let readings = readings(of: path) else { return true }
        return readings.contains { hasDoubleDot($0) }
    }

    /// Whether every server finds the same segments in the path, which is as it was sent: none that could be a dot segment, no
    /// further slash after decoding, and no text that may be decoded in several ways. If so, `isExpected` is also asked for each
    /// text that a server may decode it to.
    public static func readTheSame(in path: ExactText, isExpected: ([UInt8]) -> Bool) -> Bool {
        guard path.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), let readings = readings(of: path) else {
            return false
        }
        let slashes = path.utf8.count { $0 == UInt8(ascii: "/") }
        return readings.allSatisfy { reading in
            // Overlong forms of a character are not valid. The form `%u002e` of some servers is not, either.
            String(validating: reading, as: UTF8.self).map { !$0.unicodeScalars.contains(where: isLookalike) } ?? false
                && hasValidEscapes(reading)
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

    /// Whether some servers convert the character to a dot, a slash, a backslash or a blank.
    private static func isLookalike(_ character: Unicode.Scalar) -> Bool {
        switch character.value {
        case 0xA0, 0x2024...0x2026, 0x2044, 0x2215, 0x3000, 0xFF0E, 0xFF0F, 0xFF3C: true
        default: false
        }
    }

    private static func hasValidEscapes(_ path: [UInt8]) -> Bool {
        let parts = path.split(separator: UInt8(ascii: "%"), omittingEmptySubsequences: false)
        return parts.dropFirst().allSatisfy { part in
            part.count >= 2 && Hexadecimal.bytes(String(decoding: part.prefix(2), as: UTF8.self)) != nil
        }
    }

    private static func decoded(_ bytes: [UInt8]) -> [UInt8] {
        var (result, index) = ([UInt8](), 0)
        while index < bytes.count {
            if let value = encodedByte(bytes, at: index) {
                result.append(value)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    /// Returns the byte whose percent-encoded form begins at `index`; `nil` if none does.
    private static func encodedByte(_ bytes: [UInt8], at index: Int) -> UInt8? {
        guard bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count else { return nil }
        return Hexadecimal.bytes(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self))?.first
    }
}

extension UInt8 {
    /// Whether the character never needs percent-encoding (RFC 3986 section 2.3).
    fileprivate var isUnreserved: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: true
        default: false
        }
    }

    fileprivate var percentEncoded: [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [UInt8(ascii: "%"), digits[Int(self >> 4)], digits[Int(self & 0xF)]]
    }

    fileprivate var asciiUppercased: UInt8 { (0x61...0x7A).contains(self) ? self & 0xDF : self }
}

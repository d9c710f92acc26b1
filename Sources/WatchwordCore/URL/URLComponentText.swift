internal import WatchwordProtocol

/// Functions for paths and queries (RFC 3986 sections 3.3, 3.4 and 5.2.4).
enum URLComponentText {
    /// Splits a URL after its authority, or a relative reference, into path and query; the fragment is dropped.
    static func components(of text: String) throws(FetchFailure) -> (path: String, query: String?) {
        try text.readingUTF8 { bytes throws(FetchFailure) in try components(of: bytes) }
    }

    static func components(of text: UnsafeBufferPointer<UInt8>) throws(FetchFailure) -> (path: String, query: String?) {
        let withoutFragment = text[..<(text.firstIndex(of: UInt8(ascii: "#")) ?? text.endIndex)]
        guard let mark = withoutFragment.firstIndex(of: UInt8(ascii: "?")) else {
            return (try encoded(withoutFragment), nil)
        }
        return (try encoded(withoutFragment[..<mark]), try encoded(withoutFragment[(mark + 1)...]))
    }

    /// Percent-encodes the characters of `text` that are not allowed. Throws for control characters and `\`, because
    /// parsers disagree about their meaning.
    static func encoded(_ text: Slice<UnsafeBufferPointer<UInt8>>) throws(FetchFailure) -> String {
        if text.allSatisfy({ isPrintable($0) && !needsEncoding($0) }) { return String(decoding: text, as: UTF8.self) }
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        for byte in text {
            guard isPrintable(byte) else {
                throw .badURL("control characters and backslashes are not allowed in a URL; percent-encode them")
            }
            if needsEncoding(byte) {
                result += [UInt8(ascii: "%"), hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 15)]]
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static let hexDigits = Array("0123456789ABCDEF".utf8)
    private static func isPrintable(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F && byte != UInt8(ascii: "\\")
    }

    private static func needsEncoding(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x80..., 0x20, 0x22, 0x3C, 0x3E, 0x5E, 0x60, 0x7B...0x7D: true
        default: false
        }
    }

    /// Resolves `.` and `..`, also in the form `%2e`, and adds a missing `/` at the start.
    static func removingDotSegments(_ path: String) -> String {
        let isPlain = !path.utf8.contains(UInt8(ascii: ".")) && !path.utf8.contains(UInt8(ascii: "%"))
        if isPlain && path.utf8.first == UInt8(ascii: "/") { return path }
        var output: [Substring] = []
        let relative = path.hasPrefix("/") ? path.dropFirst() : path[...]
        let segments = relative.split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch dots(segment) {
            case 1:
                if isLast { output.append("") }
            case 2:
                if !output.isEmpty { output.removeLast() }
                if isLast { output.append("") }
            default:
                output.append(segment)
            }
        }
        return "/" + output.joined(separator: "/")
    }

    /// 1 for `.`, 2 for `..`, 0 for any other segment.
    private static func dots(_ segment: Substring) -> Int {
        switch segment.asciiLowercased {
        case ".", "%2e": 1
        case "..", ".%2e", "%2e.", "%2e%2e": 2
        default: 0
        }
    }

    /// Returns the path up to and including its last `/`, the scope of a Basic credential (RFC 7617 section 2.2).
    static func directory(of path: ExactText) -> ExactText {
        path.string.withBytes { bytes in
            guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return "/" }
            if slash == bytes.endIndex - 1 { return path }
            return ExactText(String(decoding: bytes[...slash], as: UTF8.self))
        }
    }
}

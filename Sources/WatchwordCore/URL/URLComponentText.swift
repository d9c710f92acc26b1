internal import WatchwordProtocol

/// Paths and queries as text (RFC 3986 sections 3.3, 3.4 and 5.2.4).
enum URLComponentText {
    /// Takes apart what follows an authority, or a reference without one; the fragment is dropped.
    static func components(of text: Substring) throws(FetchFailure) -> (path: String, query: String?) {
        // Bytes, here and below: every fetch comes this way, and Swift's characters cost ten times as much.
        let withoutFragment = text[..<(text.utf8.firstIndex(of: UInt8(ascii: "#")) ?? text.endIndex)]
        guard let mark = withoutFragment.utf8.firstIndex(of: UInt8(ascii: "?")) else {
            return (try encoded(withoutFragment), nil)
        }
        let query = withoutFragment[withoutFragment.utf8.index(after: mark)...]
        return (try encoded(withoutFragment[..<mark]), try encoded(query))
    }

    /// With the characters percent-encoded that may not stand there. Control characters and `\` are refused: readers
    /// disagree on what they mean.
    static func encoded(_ text: Substring) throws(FetchFailure) -> String {
        if text.utf8.allSatisfy({ isPrintable($0) && !needsEncoding($0) }) { return String(text) }
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            guard isPrintable(byte) else {
                throw .badURL("A URL holds no control characters and no backslash.")
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

    /// Resolves `.` and `..`, also where they are written `%2e`, and makes sure that the path starts with `/`.
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

    /// The path up to and with its last `/` (RFC 7617 section 2.2): what a Basic credential is good for.
    static func directory(of path: ExactText) -> ExactText {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "/" }
        return ExactText(path.string[...slash])
    }
}

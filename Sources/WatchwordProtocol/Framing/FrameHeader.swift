/// The header section of a `Content-Length` frame (Language Server Protocol, "Base Protocol").
enum FrameHeader {
    /// The bytes up to and with the empty line that ends the section; `nil` while that line has not come.
    static func length(of bytes: UnsafeRawBufferPointer) -> Int? {
        let end: [UInt8] = [13, 10, 13, 10]
        guard bytes.count >= end.count else { return nil }
        let last = min(bytes.count, Limits.frameHeaderBytes) - end.count
        guard last >= 0 else { return nil }
        for start in 0...last where bytes[start..<(start + end.count)].elementsEqual(end) { return start + end.count }
        return nil
    }

    /// The one `Content-Length` of a whole section; other fields are passed over.
    static func contentLength(_ section: UnsafeRawBufferPointer) throws(FramingFailure) -> Int {
        var found: Int?
        let text = String(decoding: section.dropLast(4), as: UTF8.self)
        for line in text.split(separator: "\r\n", omittingEmptySubsequences: false) {
            guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
                throw .malformedHeader
            }
            guard line[..<colon].equalsIgnoringASCIICase("Content-Length") else { continue }
            guard found == nil, let count = decimal(line[line.index(after: colon)...]) else { throw .noContentLength }
            found = count
        }
        guard let found else { throw .noContentLength }
        return found
    }

    /// Digits with white space around them. Twelve digits are more than anything that could be skipped.
    private static func decimal(_ text: Substring) -> Int? {
        let digits = text.utf8.drop(while: \.isBlank).reversed().drop(while: \.isBlank).reversed()
        guard !digits.isEmpty, digits.count <= 12 else { return nil }
        return digits.reduce(into: 0 as Int?) { value, digit in
            guard let known = value, (0x30...0x39).contains(digit) else {
                value = nil
                return
            }
            value = known * 10 + Int(digit - 0x30)
        }
    }
}

extension UInt8 {
    /// Space, tab, CR or LF.
    var isBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0D || self == 0x0A }
}

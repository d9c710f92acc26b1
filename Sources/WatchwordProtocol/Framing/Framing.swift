internal import Glibc
public import JSONText

/// The framing of messages on one connection. It is detected from the peer's first bytes and used in both directions.
public enum Framing: Sendable, Equatable {
    /// One JSON value per line, terminated by LF.
    case lines
    /// `Content-Length: N`, an empty line, then N bytes, as in the Language Server Protocol.
    case headers

    /// Returns the framed message.
    public func frame(_ message: some JSONWritable) -> [UInt8] {
        self == .lines ? message.serialized(terminator: "\n") : frame(text: message.serialized())
    }

    /// Returns the framed message.
    /// - Parameter text: JSON without line breaks.
    public func frame(text: [UInt8]) -> [UInt8] {
        switch self {
        case .lines: text + [UInt8(ascii: "\n")]
        case .headers: Array("Content-Length: \(text.count)\r\n\r\n".utf8) + text
        }
    }
}

/// A framing error. The following bytes cannot be split into messages, so the connection is closed.
public enum FramingFailure: Error, Sendable, Equatable {
    case unknownFraming
    case headerTooLarge
    case malformedHeader
    case noContentLength
}

extension FramingFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknownFraming: "a connection must start with a JSON value or a Content-Length header"
        case .headerTooLarge: "the frame header is larger than \(Limits.frameHeaderBytes) bytes"
        case .malformedHeader: "malformed frame header: use lines like \"Content-Length: 42\", terminated by CR LF"
        case .noContentLength: "the frame header must contain exactly one valid Content-Length"
        }
    }
}

/// The header section of a `Content-Length` frame (Language Server Protocol, "Base Protocol").
enum FrameHeader {
    /// Returns the length of the section including the empty line that ends it; `nil` if that line has not been received yet.
    static func length(of bytes: UnsafeRawBufferPointer) -> Int? {
        let section = UnsafeRawBufferPointer(rebasing: bytes.prefix(Limits.frameHeaderBytes))
        var end = 0
        while let lineEnd = section.lineEnd(from: end) {
            end = lineEnd + 1
            if section[..<end].suffix(4).elementsEqual([13, 10, 13, 10]) { return end }
        }
        return nil
    }

    /// Returns the `Content-Length` of a complete section. Other fields are ignored; a second `Content-Length` is an error.
    static func contentLength(_ section: UnsafeRawBufferPointer) throws(FramingFailure) -> Int {
        var found: Int?
        let text = String(decoding: section.dropLast(4), as: UTF8.self)
        for line in text.split(separator: "\r\n", omittingEmptySubsequences: false) {
            guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
                throw .malformedHeader
            }
            guard line[..<colon].equalsIgnoringASCIICase("Content-Length") else { continue }
            // guard: frame-one-length
            guard found == nil, let count = decimal(line[line.index(after: colon)...]) else { throw .noContentLength }
            found = count
        }
        guard let found else { throw .noContentLength }
        return found
    }

    /// Parses digits surrounded by optional spaces and tabs (RFC 9110 section 5.6.3). At most twelve digits are accepted.
    private static func decimal(_ text: Substring) -> Int? {
        let digits = text.utf8.drop(while: isPadding).reversed().drop(while: isPadding).reversed()
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

private func isPadding(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

extension UInt8 {
    /// Space, tab, CR or LF.
    var isBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0D || self == 0x0A }
}

extension UnsafeRawBufferPointer {
    /// Returns the index of the first LF at or after `start`.
    func lineEnd(from start: Int) -> Int? {
        guard let base = baseAddress, start < count else { return nil }
        return memchr(base + start, 0x0A, count - start).map { UnsafeRawPointer($0) - base }
    }
}

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

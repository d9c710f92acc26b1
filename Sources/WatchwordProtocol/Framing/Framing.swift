public import JSONText

/// How messages are told apart on one connection. Detected from the first bytes of the peer, and used both ways.
public enum Framing: Sendable, Equatable {
    /// One JSON value to a line, ended by LF.
    case lines
    /// `Content-Length: N`, an empty line, then N bytes, as in the Language Server Protocol.
    case headers

    /// The message with its frame, ready to be sent.
    public func frame(_ message: JSON) -> [UInt8] {
        self == .lines ? message.serialized(terminator: "\n") : frame(text: message.serialized())
    }

    /// - Parameter text: JSON without a line break.
    public func frame(text: [UInt8]) -> [UInt8] {
        switch self {
        case .lines: text + [UInt8(ascii: "\n")]
        case .headers: Array("Content-Length: \(text.count)\r\n\r\n".utf8) + text
        }
    }
}

/// Why the bytes of a peer cannot be told apart into messages any more. The connection ends with it.
public enum FramingFailure: Error, Sendable, Equatable {
    case unknownFraming
    case headerTooLarge
    case malformedHeader
    case noContentLength
}

extension FramingFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknownFraming: "a connection starts with a JSON value, or with the header Content-Length"
        case .headerTooLarge: "the header of a frame is larger than \(Limits.frameHeaderBytes) bytes"
        case .malformedHeader: "the header of a frame is not made of lines like \"Content-Length: 42\", ended by CR LF"
        case .noContentLength: "the header of a frame does not say one Content-Length"
        }
    }
}

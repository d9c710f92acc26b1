/// What exactly went wrong, as `error.data.cause` says it beside `kind`: for clients that tell more cases apart, such as those
/// with curl's exit codes. Absent where the kind says everything.
public enum FailureCause: String, Sendable, CaseIterable {
    /// The server closed the connection without sending anything.
    case emptyReply
    /// The connection ended before the body was complete.
    case bodyCutShort
    /// The request could not be written to the connection.
    case sendFailed
    /// A chunk of the body has no valid size (RFC 9112 section 7.1), or receiving failed in another way.
    case receiveFailed
    /// An error of HTTP/2 on the connection or the stream.
    case http2
    /// The response does not begin with a status line (RFC 9112 section 4).
    case notHTTP
    /// The header section is invalid.
    case malformedHeader
    /// The body cannot be decoded, or its content coding is not supported.
    case badContentCoding
    /// A redirect leads to a scheme that `redirects.schemes` excludes.
    case schemeNotAllowed
}

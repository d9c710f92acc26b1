/// The cause of an error in more detail than its kind: `error.data.cause`, for clients that distinguish more cases, such as
/// those with curl's exit codes. Absent if the kind is specific enough.
public enum FailureCause: String, Sendable, CaseIterable {
    /// The server closed the connection without sending anything.
    case emptyReply
    /// The connection ended before the body was complete.
    case bodyCutShort
    /// The request could not be written to the connection.
    case sendFailed
    /// A chunk of the body has an invalid size (RFC 9112 section 7.1), or receiving failed for another reason.
    case receiveFailed
    /// An HTTP/2 connection or stream error occurred.
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

public import WatchwordProtocol

/// The reason why a fetch has no response. It becomes the error of the reply to the client.
public struct FetchFailure: Error, Sendable, Equatable {
    public var kind: ErrorKind
    /// The message: what happened, to what, and what to do. Contains no secret.
    public var text: String
    /// More detail than `kind`, for clients that need it.
    public var cause: FailureCause?
    /// The status with which the proxy refused to connect to the server, if any.
    public var proxyStatus: Int?

    public init(_ kind: ErrorKind, _ text: String, cause: FailureCause? = nil) {
        self.kind = kind
        self.text = text
        self.cause = cause
    }
}

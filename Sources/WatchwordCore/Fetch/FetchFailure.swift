public import WatchwordProtocol

/// Why a fetch has no response. Becomes the error of its reply.
public struct FetchFailure: Error, Sendable, Equatable {
    public var kind: ErrorKind
    /// What happened, to what, and what to do about it; without any secret.
    public var text: String
    /// More than `kind` says, for clients that want to know.
    public var cause: FailureCause?

    public init(_ kind: ErrorKind, _ text: String, cause: FailureCause? = nil) {
        self.kind = kind
        self.text = text
        self.cause = cause
    }
}

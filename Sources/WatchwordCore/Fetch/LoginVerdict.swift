public import WatchwordProtocol

/// What a server, or a proxy, made of a login that a fetch sent, for whoever supplied it. Holds no secret.
public struct LoginVerdict: Sendable, Equatable {
    public var fetch: FetchID
    public var space: ProtectionSpace
    public var isAccepted: Bool
    /// `nil` where the credential shows none.
    public var user: ExactText?
}

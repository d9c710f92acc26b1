public import WatchwordProtocol

/// The verdict of a server or proxy on a login, for the client that supplied it. Contains no secret.
public struct LoginVerdict: Sendable, Equatable {
    public var space: ProtectionSpace
    public var isAccepted: Bool
    /// `nil` if the credential has no user to show.
    public var user: ExactText?
}

public import WatchwordProtocol

/// A change of a stored credential.
public struct CredentialChange: Sendable, Equatable {
    public enum Kind: String, Sendable {
        case stored, forgotten
        case defaultChanged
        /// The session cache was cleared, completely or for one origin.
        case cleared
    }

    public var kind: Kind
    /// `nil` if more than one space is affected.
    public var space: SpacePattern?
    public var user: ExactText?
    /// `session` or `keyring`.
    public var source: CredentialSource

    public init(_ kind: Kind, _ space: SpacePattern?, user: ExactText?, source: CredentialSource) {
        self.kind = kind
        self.space = space
        self.user = user
        self.source = source
    }
}

extension CredentialChange {
    init(_ kind: Kind, _ attempt: Attempt, in source: CredentialSource) {
        self.init(kind, SpacePattern(attempt.space), user: attempt.credential.shownUser, source: source)
    }
}

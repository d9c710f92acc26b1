public import WatchwordProtocol

/// A use, acceptance or refusal of a credential or certificate in a fetch, for the audit log. Contains no secret.
public struct AuditRecord: Sendable, Equatable {
    public var kind: AuditEvent.Kind
    /// The origin of the request.
    public var origin: Origin
    public var space: SpacePattern
    /// `nil` if the credential has no user to show.
    public var user: ExactText?
    public var source: CredentialSource
    /// Set only for a server certificate that a respondent has accepted.
    public var persistence: Persistence?
}

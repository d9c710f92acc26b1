public import WatchwordProtocol

/// What a fetch has done with a credential or a certificate, for whoever keeps account of it. Holds no secret.
public struct AuditNote: Sendable, Equatable {
    public var kind: AuditEvent.Kind
    public var fetch: FetchID
    /// Of the request.
    public var origin: Origin
    public var space: SpacePattern
    /// `nil` where the credential shows none.
    public var user: ExactText?
    public var source: CredentialSource
    /// Only of a certificate that was accepted.
    public var persistence: Persistence?
}

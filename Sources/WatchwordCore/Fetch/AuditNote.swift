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

extension FetchMachine {
    /// What the request that goes out now carries for the first time: the one place through which every credential passes.
    mutating func noteUses(_ context: inout FetchContext) {
        for side in Side.allCases {
            guard let attempt = outgoing[side], !attempt.isNoted else { continue }
            outgoing[side]?.isNoted = true
            note(.credentialUsed, attempt, &context)
        }
        guard case .certificate(_, let source) = outgoing.certificate, notedCertificate != hop.url.origin else {
            return
        }
        notedCertificate = hop.url.origin
        note(.certificateUsed, server.space(realm: nil, .clientCertificate), nil, source, nil, &context)
    }

    func note(_ kind: AuditEvent.Kind, _ attempt: Attempt, _ context: inout FetchContext) {
        note(kind, attempt.space, attempt.credential.shownUser, attempt.source, nil, &context)
    }

    func note(
        _ kind: AuditEvent.Kind, _ space: ProtectionSpace, _ user: ExactText?, _ source: CredentialSource,
        _ persistence: Persistence?, _ context: inout FetchContext
    ) {
        context.outbox.notes.append(
            AuditNote(
                kind: kind, fetch: id, origin: hop.url.origin, space: SpacePattern(space), user: user, source: source,
                persistence: persistence))
    }
}

public import JSONText

/// A stored credential that fits a challenge, without its secret: it can be chosen with `{"type":"stored","id":…}`.
public struct KnownUser: Sendable, Equatable {
    /// As in `credential/list`.
    public var id: CredentialID
    public var user: String
    /// The Windows domain, where one was given apart from the user.
    public var domain: String?
    /// `session` or `keyring`.
    public var source: CredentialSource

    public init(id: CredentialID, user: String, domain: String?, source: CredentialSource) {
        self.id = id
        self.user = user
        self.domain = domain
        self.source = source
    }

    public var json: JSON {
        .object([
            "id": .string(id.text), "user": .string(user), "domain": domain.map { .string($0) },
            "source": .string(source.rawValue),
        ])
    }
}

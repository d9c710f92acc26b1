public import JSONText

/// A stored credential that fits a challenge, without its secret: it can be chosen with `{"type":"stored","id":…}`.
public struct KnownUser: Sendable, Equatable {
    /// As in `credential/list`.
    public var id: CredentialID
    public var user: ExactText
    /// The Windows domain, where one was given apart from the user.
    public var domain: ExactText?
    /// `session` or `keyring`.
    public var source: CredentialSource

    public init(id: CredentialID, user: ExactText, domain: ExactText?, source: CredentialSource) {
        self.id = id
        self.user = user
        self.domain = domain
        self.source = source
    }

    public var json: JSON {
        .object([
            "id": .string(id.text), "user": user.json, "domain": domain?.json,
            "source": .string(source.rawValue),
        ])
    }
}

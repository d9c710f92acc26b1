public import JSONText

/// A stored credential that matches a challenge, without its secret. An answer can select it with `{"type":"stored","id":…}`.
public struct KnownUser: Sendable, Equatable {
    /// The id as in `credential/list`.
    public var id: CredentialID
    public var user: ExactText
    /// The Windows domain, if it is separate from the user.
    public var domain: ExactText?
    /// The source: `session` or `keyring`.
    public var source: CredentialSource

    public init(id: CredentialID, user: ExactText, domain: ExactText?, source: CredentialSource) {
        self.id = id
        self.user = user
        self.domain = domain
        self.source = source
    }

    /// Returns `nil` if a member is missing or the id is invalid.
    public init?(_ json: JSON) {
        guard let id = json["id"]?.string.flatMap(CredentialID.init), let user = json["user"]?.exactText,
            let source = json["source"]?.string.flatMap(CredentialSource.init)
        else { return nil }
        self.init(id: id, user: user, domain: json["domain"]?.exactText, source: source)
    }

    /// The user with the domain, if any.
    public var account: Account { Account(user: user, domain: domain) }

    public var json: JSON {
        [
            "id": .string(id.text), "user": user.json, "domain": domain?.json,
            "source": .string(source.rawValue),
        ]
    }
}

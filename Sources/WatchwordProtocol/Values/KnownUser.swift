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

    /// `nil` for what lacks a member, or has an id that is none.
    public init?(_ json: JSON) {
        guard let id = json["id"]?.string.flatMap(CredentialID.init), let user = json["user"]?.exactText,
            let source = json["source"]?.string.flatMap(CredentialSource.init)
        else { return nil }
        self.init(id: id, user: user, domain: json["domain"]?.exactText, source: source)
    }

    /// The user with the domain, where there is one.
    public var account: Account { Account(user: user, domain: domain) }

    public var json: JSON {
        [
            "id": .string(id.text), "user": user.json, "domain": domain?.json,
            "source": .string(source.rawValue),
        ]
    }
}

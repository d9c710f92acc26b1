public import JSONText

/// The account that a password belongs to: a user, and the Windows domain if it is separate from the user.
///
/// Accounts compare byte by byte. An empty domain counts as none.
public struct Account: Sendable, Hashable {
    public let user: ExactText
    public let domain: ExactText?

    public init(user: ExactText, domain: ExactText? = nil) {
        self.user = user
        self.domain = domain.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// `DOMAIN\user`, or the user alone.
    public var text: ExactText { domain.map { "\($0)\\\(user)" } ?? user }

    /// Whether a fetch that names this account may log in as `other`. A user without a domain matches that user in any domain,
    /// and a user of the form `DOMAIN\user` matches that user in that domain.
    public func admits(_ other: Account) -> Bool {
        self == other || domain == nil && (user == other.user || user == other.text)
    }
}

extension Account: ExpressibleByStringLiteral {
    public init(stringLiteral user: String) { self.init(user: ExactText(user)) }
}

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

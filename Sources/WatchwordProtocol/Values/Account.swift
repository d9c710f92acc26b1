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

/// The account that a password belongs to: a user, and the Windows domain where one was given apart from the user.
///
/// Compares byte by byte. An empty domain is none.
public struct Account: Sendable {
    public var user: String
    public var domain: String?

    public init(user: String, domain: String? = nil) {
        self.user = user
        self.domain = domain.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// `DOMAIN\user`, or the user alone.
    public var text: String { domain.map { "\($0)\\\(user)" } ?? user }

    /// Whether a fetch that names this account may be made as `other`. A user without a domain is meant in every domain.
    public func admits(_ other: Account) -> Bool {
        self == other || domain == nil && (user.isSameText(as: other.user) || user.isSameText(as: other.text))
    }
}

extension Account: Hashable {
    public static func == (left: Account, right: Account) -> Bool {
        left.user.isSameText(as: right.user) && (left.domain ?? "").isSameText(as: right.domain ?? "")
    }

    public func hash(into hasher: inout Hasher) { for byte in text.utf8 { hasher.combine(byte) } }
}

extension Account: ExpressibleByStringLiteral {
    public init(stringLiteral user: String) { self.init(user: user) }
}

extension String {
    fileprivate func isSameText(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}

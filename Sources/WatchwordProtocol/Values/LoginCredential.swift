public import JSONText

/// The place where a credential is stored after the server has accepted it.
public enum Persistence: String, Sendable, CaseIterable {
    /// The credential is used for its fetch only, and not stored.
    case none
    /// Stored in the session cache of the broker.
    case forSession
    /// Stored in the keyring, and in the session cache.
    case permanent
}

/// A credential for logging in to a server or a proxy over HTTP.
public struct LoginCredential: Sendable, Equatable {
    public enum Form: Sendable, Hashable {
        /// `user` and the password in `secret`.
        case password
        /// `secret` is a token of the Bearer scheme (RFC 6750), without a user.
        case token
        /// `secret` is the field value without the scheme, as provided by the client, without a user. `state` is opaque data
        /// of the client, returned with the next challenge if the server continues with another round.
        case header(scheme: ExactText, state: ExactText?)
        /// The Kerberos tickets of the broker's user; `secret` is empty.
        case tickets
    }

    // The copies of a credential share its parts: one is copied often in a fetch, and hardly ever changed.
    private struct Parts: Sendable, Equatable {
        var form: Form
        var user: ExactText
        var domain: ExactText?
        var secret: Secret
        var range = PathRange()
        var expiresAt: Duration?
        var refreshToken: Secret?
        var binding: ProofKey?
        var persistence: Persistence
        var scope: BearerScope?
    }

    private var parts: Boxed<Parts>

    public var form: Form { parts.value.form }
    /// The user; empty if the form has none.
    public var user: ExactText { parts.value.user }
    /// The Windows domain for NTLM, if it is separate from the user.
    public var domain: ExactText? { parts.value.domain }
    public var secret: Secret { parts.value.secret }
    /// The part of the server for which the password or token is valid.
    public var range: PathRange {
        get { parts.value.range }
        set { parts = parts.changed { $0.range = newValue } }
    }
    /// The wall-clock time, since 1970, when the password or token expires. It is not sent afterwards.
    public var expiresAt: Duration? {
        get { parts.value.expiresAt }
        set { parts = parts.changed { $0.expiresAt = newValue } }
    }
    /// An OAuth refresh token (RFC 6749 section 1.5) of the password or token. Stored and released with it, but never sent.
    public var refreshToken: Secret? {
        get { parts.value.refreshToken }
        set { parts = parts.changed { $0.refreshToken = newValue } }
    }
    /// The key to which a token is bound; `nil` for a token that anyone can use.
    public var binding: ProofKey? {
        get { parts.value.binding }
        set { parts = parts.changed { $0.binding = newValue } }
    }
    public var persistence: Persistence {
        get { parts.value.persistence }
        set { parts = parts.changed { $0.persistence = newValue } }
    }
    /// The scope for which the server accepted a token; `nil` if unknown, and for other forms.
    public var scope: BearerScope? {
        get { parts.value.scope }
        set { parts = parts.changed { $0.scope = newValue } }
    }

    /// Creates a credential of a user and a password.
    public init(user: ExactText, password: Secret, domain: ExactText? = nil, persistence: Persistence = .forSession) {
        self.init(form: .password, user: user, domain: domain, secret: password, persistence: persistence)
    }

    public init(
        form: Form, user: ExactText = "", domain: ExactText? = nil, secret: Secret, persistence: Persistence = .none
    ) {
        parts = Boxed(Parts(form: form, user: user, domain: domain, secret: secret, persistence: persistence))
    }

    /// Whether both log in with the same form, account and secret. Other parts, such as the path, may differ.
    public func isSame(as other: LoginCredential) -> Bool {
        parts === other.parts || form == other.form && account == other.account && secret == other.secret
    }

    /// Whether both are equal in every part except the persistence.
    public func isWhole(_ other: LoginCredential) -> Bool {
        parts === other.parts
            || isSame(as: other) && isForSamePart(as: other) && expiresAt == other.expiresAt
                && refreshToken == other.refreshToken
    }

    /// Whether both are for the same path, and have the same scope.
    // guard: scope-distinguished
    public func isForSamePart(as other: LoginCredential) -> Bool { hasPath(of: other) && scope == other.scope }

    /// Whether both are for the same path.
    public func hasPath(of other: LoginCredential) -> Bool { PathRange.areSame(path ?? "/", other.path ?? "/") }

    /// Whether a server might read `requested` as a path of this credential, although it does not cover that path as it is
    /// written. A wider credential is then not used, either. The paths that this credential excludes are not its own.
    /// - Parameters:
    ///   - length: the `pathLength` of the wider credential.
    ///   - user: the user that the fetch names, if any; a credential of another user does not count.
    // guard: ambiguous-path
    public func mayPrecede(_ length: Int, at requested: ExactText, for user: Account?) -> Bool {
        guard let path, user?.admits(account) ?? true else { return false }
        return pathLength > length && PathRange.path(path, mayCover: requested)
            && !covers(requested) && !range.excluded.contains { PathRange.path($0, covers: requested) }
    }

    /// See `PathRange.path`.
    public var path: ExactText? {
        get { range.path }
        set { range.path = newValue }
    }

    /// The length of the path (`PathRange.length`); 0 for the whole server. A longer path is more specific.
    public var pathLength: Int { path.map { PathRange.length(of: $0) } ?? 0 }

    /// Whether the credential has expired.
    /// - Parameter time: The wall-clock time since 1970.
    public func isExpired(at time: Duration) -> Bool { expiresAt.map { $0 <= time } ?? false }

    /// Whether the credential is valid for the path `requested` (`PathRange.covers`).
    public func covers(_ requested: ExactText) -> Bool { range.covers(requested) }

    /// The account. Two domains may have users of the same name.
    public var account: Account { Account(user: user, domain: domain) }

    /// The account; `nil` if the form has none.
    public var shownAccount: Account? { form == .password ? account : nil }

    /// The user for results and lists; `nil` if the form has none.
    public var shownUser: ExactText? { form == .password ? user : nil }
}

extension LoginCredential {
    /// The value of `type` in a message.
    var type: String {
        switch form {
        case .password: "password"
        case .token: "token"
        case .header: "header"
        case .tickets: "tickets"
        }
    }

    /// Parses a password credential.
    init(password members: Members) throws(InvalidParams) {
        self.init(
            user: try members.required("user", members.exactText("user")),
            password: try members.required("password", members.secret("password", maxBytes: Limits.credentialBytes)),
            domain: try members.exactText("domain"),
            persistence: try members.choice("persistence", as: Persistence.self) ?? .forSession)
        try members.check(user, as: "user")
        if let domain { try members.check(domain, as: "domain") }
        try members.check(secret, as: "password")
        path = try members.path()
        expiresAt = try members.moment("expiresAt")
        refreshToken = try members.secret("refreshToken", maxBytes: Limits.tokenBytes)
        if let refreshToken { try members.check(refreshToken, as: "refreshToken") }
    }

    /// Parses a token credential. A token is stored for the session at most, because most tokens are short-lived.
    init(token members: Members) throws(InvalidParams) {
        let token = try members.required("token", members.secret("token", maxBytes: Limits.tokenBytes))
        guard token.withUnsafeBytes(\.isToken68) else {
            throw members.wrong(
                "token", "a token of letters, digits and -._~+/, with = at the end (RFC 6750 section 2.1)")
        }
        self.init(
            form: .token, secret: token,
            persistence: try members.choice("persistence", as: Persistence.self) ?? .forSession)
        expiresAt = try members.moment("expiresAt")
        refreshToken = try members.secret("refreshToken", maxBytes: Limits.tokenBytes)
        if let refreshToken { try members.check(refreshToken, as: "refreshToken") }
    }

    /// Parses a header credential. The value answers one challenge only, so it is never stored, whatever the persistence.
    init(header members: Members) throws(InvalidParams) {
        let scheme = try members.required("scheme", members.string("scheme"))
        guard !scheme.isEmpty, scheme.utf8.allSatisfy(\.isTokenCharacter) else {
            throw members.wrong("scheme", "a token (RFC 9110 section 11.1)")
        }
        let value = try members.required("value", members.secret("value", maxBytes: Limits.tokenBytes))
        try members.check(value, as: "value")
        let state = try members.string("state")
        if let state, state.utf8.count > Limits.tokenBytes {
            throw members.wrong("state", "at most \(Limits.tokenBytes) bytes long")
        }
        _ = try members.choice("persistence", as: Persistence.self)
        self.init(form: .header(scheme: ExactText(scheme), state: state.map { ExactText($0) }), secret: value)
    }

    /// Contains the secret: serialize it with `JSON.write(_:)`.
    public var json: JSON {
        let secret = secret.withUnsafeBytes { JSON.string(secret: $0) } ?? .null
        let start: JSON = ["type": .string(type)]
        let members: JSON =
            switch form {
            case .password:
                start.adding([
                    "user": user.json, "password": secret, "domain": domain?.json, "path": path?.json,
                ])
            case .token: start.adding(["token": secret])
            case .header(let scheme, let state):
                start.adding(["scheme": scheme.json, "value": secret, "state": state?.json])
            case .tickets: start
            }
        return members.adding([
            "expiresAt": expiresAt.map { .string(UTCTime.text($0.wholeMilliseconds)) },
            "refreshToken": refreshToken?.withUnsafeBytes { JSON.string(secret: $0) },
            "persistence": .string(persistence.rawValue),
        ])
    }
}

extension Members {
    /// Returns the path; `nil` for the whole server.
    fileprivate func path() throws(InvalidParams) -> ExactText? {
        guard let path = try exactText("path"), path != "/" else { return nil }
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(where: { $0 == 0x3F || $0 == 0x23 }) else {
            throw wrong("path", "a path that begins with \"/\" and contains no ? or #")
        }
        try check(path, as: "path")
        return path
    }

    /// Returns a time since 1970.
    func moment(_ name: String) throws(InvalidParams) -> Duration? {
        guard let text = try string(name) else { return nil }
        guard let milliseconds = UTCTime.rfc3339(text) else {
            throw wrong(name, "a time like 2026-11-21T17:20:03Z (RFC 3339)")
        }
        return .milliseconds(milliseconds)
    }

    /// Refuses a text that no scheme can send, or that servers would misread (RFC 7617 section 2).
    fileprivate func check(_ text: ExactText, as name: String) throws(InvalidParams) {
        if text.utf8.count > Limits.credentialBytes {
            throw wrong(name, "at most \(Limits.credentialBytes) bytes long")
        }
        if text.utf8.holdsControls { throw wrong(name, "a text without control characters") }
    }

    fileprivate func check(_ secret: Secret, as name: String) throws(InvalidParams) {
        if secret.withUnsafeBytes(\.holdsControls) { throw wrong(name, "a text without control characters") }
    }
}

extension Sequence where Element == UInt8 {
    fileprivate var holdsControls: Bool { contains { $0 < 0x20 || $0 == 0x7F } }
}

extension UnsafeRawBufferPointer {
    fileprivate var isToken68: Bool {
        guard let end = lastIndex(where: { $0 != UInt8(ascii: "=") }) else { return false }
        return self[...end].allSatisfy(\.isToken68Character)
    }
}

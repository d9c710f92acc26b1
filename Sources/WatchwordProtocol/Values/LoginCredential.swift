public import JSONText

/// How long a credential is kept once the server has accepted it.
public enum Persistence: String, Sendable, CaseIterable {
    /// For the fetch that it was given to.
    case none
    /// In the session cache of the broker.
    case forSession
    /// In the keyring, and for the session.
    case permanent
}

/// What is sent to a server to log in.
public struct LoginCredential: Sendable, Equatable {
    public enum Form: Sendable, Hashable {
        /// `user` and the password in `secret`.
        case password
        /// `secret` is a token of the Bearer scheme (RFC 6750); there is no user.
        case token
        /// `secret` is the value of the field, less the scheme, ready as the client has made it; there is no user. `state`
        /// is the client's own: it returns with the next challenge, should the server go on with another round.
        case header(scheme: ExactText, state: ExactText?)
        /// The Kerberos tickets of the user that the broker runs as; `secret` is empty.
        case tickets
    }

    public var form: Form
    /// Empty where the form has none.
    public var user: ExactText
    /// The Windows domain, for NTLM; `nil` where none was given apart from the user.
    public var domain: ExactText?
    public var secret: Secret
    /// The password is good at this path and below only; `nil` for the whole server. Begins with "/", and is longer.
    public var path: ExactText?
    /// The wall-clock time since 1970 from when the password, or the token, is sent no more.
    public var expiresAt: Duration?
    /// An OAuth refresh token (RFC 6749 section 1.5) that belongs to the password; kept and released with it, never sent.
    public var refreshToken: Secret?
    public var persistence: Persistence
    /// What the server has accepted a token for; `nil` for one whose scope nobody knows, and for what is none.
    public var scope: BearerScope?

    /// A user and a password.
    public init(user: ExactText, password: Secret, domain: ExactText? = nil, persistence: Persistence = .forSession) {
        self.init(form: .password, user: user, domain: domain, secret: password, persistence: persistence)
    }

    public init(
        form: Form, user: ExactText = "", domain: ExactText? = nil, secret: Secret, persistence: Persistence = .none
    ) {
        self.form = form
        self.user = user
        self.domain = domain
        self.secret = secret
        self.persistence = persistence
    }

    /// Whether both send the same: how long they are kept does not matter.
    public func isSame(as other: LoginCredential) -> Bool {
        form == other.form && account == other.account && secret == other.secret
    }

    /// Whether both are the same in every part: how long they are kept does not matter.
    public func isWhole(_ other: LoginCredential) -> Bool {
        isSame(as: other) && isForSamePart(as: other) && expiresAt == other.expiresAt
            && refreshToken == other.refreshToken
    }

    /// Whether both are for the same part of the server, tokens with the same scope.
    public func isForSamePart(as other: LoginCredential) -> Bool { hasPath(of: other) && scope == other.scope }

    /// Whether both are for the same path.
    public func hasPath(of other: LoginCredential) -> Bool {
        path ?? "/" == other.path ?? "/"
    }

    /// The longer, the narrower; 0 for the whole server.
    public var pathLength: Int { path?.utf8.count ?? 0 }

    /// Whether it is sent no more.
    /// - Parameter time: of the wall clock, since 1970.
    public func isExpired(at time: Duration) -> Bool { expiresAt.map { $0 <= time } ?? false }

    /// Whether it is good for `requested`: its path and what is below; `/a` is not good for `/ab`.
    public func covers(_ requested: ExactText) -> Bool { path.map { Self.path($0, covers: requested) } ?? true }

    /// Whether `requested` is `path` or below.
    public static func path(_ path: ExactText, covers requested: ExactText) -> Bool {
        requested == path || requested.hasPrefix(path.hasSuffix("/") ? path : "\(path)/")
    }

    /// Whose password it is: two domains may have a user of the same name.
    public var account: Account { Account(user: user, domain: domain) }

    /// The account; `nil` where the form has none.
    public var shownAccount: Account? { form == .password ? account : nil }

    /// The user as results and lists show it; `nil` where the form has none.
    public var shownUser: ExactText? { form == .password ? user : nil }
}

extension LoginCredential {
    /// What a message names in `type`.
    var type: String {
        switch form {
        case .password: "password"
        case .token: "token"
        case .header: "header"
        case .tickets: "tickets"
        }
    }

    /// Strict, as `Credential` is.
    init(password members: Members) throws(InvalidParams) {
        try members.refuseMembers(otherThan: [
            "type", "user", "password", "domain", "path", "expiresAt", "refreshToken", "persistence",
        ])
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

    /// A token is kept for the session at most, as most of them are short-lived.
    init(token members: Members) throws(InvalidParams) {
        try members.refuseMembers(otherThan: ["type", "token", "expiresAt", "refreshToken", "persistence"])
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

    /// A value that the client has made is the answer to one challenge, and good for nothing else: it is not kept, whatever
    /// the persistence.
    init(header members: Members) throws(InvalidParams) {
        try members.refuseMembers(otherThan: ["type", "scheme", "value", "state", "persistence"])
        let scheme = try members.required("scheme", members.string("scheme"))
        guard !scheme.isEmpty, scheme.utf8.allSatisfy(\.isTokenCharacter) else {
            throw members.wrong("scheme", "a token (RFC 9110 section 11.1)")
        }
        let value = try members.required("value", members.secret("value", maxBytes: Limits.tokenBytes))
        try members.check(value, as: "value")
        let state = try members.string("state")
        if let state, state.utf8.count > Limits.tokenBytes {
            throw members.wrong("state", "at most \(Limits.tokenBytes) bytes")
        }
        _ = try members.choice("persistence", as: Persistence.self)
        self.init(form: .header(scheme: ExactText(scheme), state: state.map { ExactText($0) }), secret: value)
    }

    /// Holds the secret: it must be written with `JSON.write(_:)`.
    public var json: JSON {
        let secret = secret.withUnsafeBytes { JSON.string(secret: $0) } ?? .null
        let start: JSON = ["type": .string(type)]
        let members: JSON =
            switch form {
            case .password:
                start.adding(["user": user.json, "password": secret, "domain": domain?.json, "path": path?.json])
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
    /// `nil` for the whole server.
    fileprivate func path() throws(InvalidParams) -> ExactText? {
        guard let path = try exactText("path"), path != "/" else { return nil }
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(where: { $0 == 0x3F || $0 == 0x23 }) else {
            throw wrong("path", "a path from \"/\" on, without ? and #")
        }
        try check(path, as: "path")
        return path
    }

    /// Since 1970.
    func moment(_ name: String) throws(InvalidParams) -> Duration? {
        guard let text = try string(name) else { return nil }
        guard let milliseconds = UTCTime.rfc3339(text) else {
            throw wrong(name, "a time like 2026-11-21T17:20:03Z (RFC 3339)")
        }
        return .milliseconds(milliseconds)
    }

    /// What no scheme can send, or would send so that the server reads something else (RFC 7617 section 2).
    fileprivate func check(_ text: ExactText, as name: String) throws(InvalidParams) {
        if text.utf8.count > Limits.credentialBytes { throw wrong(name, "at most \(Limits.credentialBytes) bytes") }
        if text.utf8.holdsControls { throw wrong(name, "without control characters") }
    }

    fileprivate func check(_ secret: Secret, as name: String) throws(InvalidParams) {
        if secret.withUnsafeBytes(\.holdsControls) { throw wrong(name, "without control characters") }
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

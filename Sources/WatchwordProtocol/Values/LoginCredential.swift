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
        case header(scheme: String, state: String?)
        /// The Kerberos tickets of the user that the broker runs as; `secret` is empty.
        case tickets
    }

    public var form: Form
    /// Empty where the form has none.
    public var user: String
    /// The Windows domain, for NTLM; `nil` where none was given apart from the user.
    public var domain: String?
    public var secret: Secret
    public var persistence: Persistence

    /// A user and a password.
    public init(user: String, password: Secret, domain: String? = nil, persistence: Persistence = .forSession) {
        self.init(form: .password, user: user, domain: domain, secret: password, persistence: persistence)
    }

    public init(
        form: Form, user: String = "", domain: String? = nil, secret: Secret, persistence: Persistence = .none
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

    /// Whose password it is: two domains may have a user of the same name.
    public var account: Account { Account(user: user, domain: domain) }

    /// The account; `nil` where the form has none.
    public var shownAccount: Account? { form == .password ? account : nil }

    /// The user as results and lists show it; `nil` where the form has none.
    public var shownUser: String? { form == .password ? user : nil }
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
        try members.refuseMembers(otherThan: ["type", "user", "password", "domain", "persistence"])
        self.init(
            user: try members.required("user", members.string("user")),
            password: try members.required("password", members.secret("password", maxBytes: Limits.credentialBytes)),
            domain: try members.string("domain"),
            persistence: try members.choice("persistence", as: Persistence.self) ?? .forSession)
        try members.check(user, as: "user")
        if let domain { try members.check(domain, as: "domain") }
        try members.check(secret, as: "password")
    }

    /// A token is kept for the session at most, as most of them are short-lived.
    init(token members: Members) throws(InvalidParams) {
        try members.refuseMembers(otherThan: ["type", "token", "persistence"])
        let token = try members.required("token", members.secret("token", maxBytes: Limits.tokenBytes))
        guard token.withUnsafeBytes(\.isToken68) else {
            throw members.wrong(
                "token", "a token of letters, digits and -._~+/, with = at the end (RFC 6750 section 2.1)")
        }
        self.init(
            form: .token, secret: token,
            persistence: try members.choice("persistence", as: Persistence.self) ?? .forSession)
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
        self.init(form: .header(scheme: scheme, state: state), secret: value)
    }

    /// Holds the secret: it must be written with `JSON.write(_:)`.
    public var json: JSON {
        let secret = secret.withUnsafeBytes { JSON.string(utf8: $0) } ?? .null
        let start: JSON = ["type": .string(type)]
        let members: JSON =
            switch form {
            case .password:
                start.adding(["user": .string(user), "password": secret, "domain": domain.map { .string($0) }])
            case .token: start.adding(["token": secret])
            case .header(let scheme, let state):
                start.adding(["scheme": .string(scheme), "value": secret, "state": state.map { .string($0) }])
            case .tickets: start
            }
        return members.adding(["persistence": .string(persistence.rawValue)])
    }
}

extension Members {
    /// What no scheme can send, or would send so that the server reads something else (RFC 7617 section 2).
    fileprivate func check(_ text: String, as name: String) throws(InvalidParams) {
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

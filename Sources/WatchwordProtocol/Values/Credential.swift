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

/// A user and a password.
public struct PasswordCredential: Sendable, Equatable {
    public var user: String
    public var password: Secret
    public var persistence: Persistence

    public init(user: String, password: Secret, persistence: Persistence = .forSession) {
        self.user = user
        self.password = password
        self.persistence = persistence
    }

    /// Whether both send the same: how long they are kept does not matter.
    public func isSame(as other: PasswordCredential) -> Bool {
        user.utf8.elementsEqual(other.user.utf8) && password == other.password
    }
}

/// What an answer to a challenge can carry.
public enum Credential: Sendable, Equatable {
    case password(PasswordCredential)
    /// The one that the challenge proposed.
    case proposed
}

extension Credential {
    /// Strict: a member that it does not know makes it invalid, so that a typing error cannot weaken a decision.
    public init(_ json: JSON?, at path: String) throws(InvalidParams) {
        let members = try Members(json, at: path)
        switch try members.required("type", members.string("type")) {
        case "password":
            self = .password(try PasswordCredential(members))
        case "proposed":
            try members.refuseMembers(otherThan: ["type"])
            self = .proposed
        case let other:
            throw InvalidParams(
                "\(path).type \"\(other.shortened)\" is not known here; this broker takes password and proposed")
        }
    }

    /// Holds the password: it must be written with `JSON.write(_:)`.
    public var json: JSON {
        switch self {
        case .proposed: ["type": "proposed"]
        case .password(let credential):
            .object([
                "type": "password", "user": .string(credential.user),
                "password": credential.password.withUnsafeBytes { JSON.string(utf8: $0) } ?? .null,
                "persistence": .string(credential.persistence.rawValue),
            ])
        }
    }
}

extension PasswordCredential {
    init(_ members: Members) throws(InvalidParams) {
        try members.refuseMembers(otherThan: ["type", "user", "password", "domain", "persistence"])
        user = try members.required("user", members.string("user"))
        password = try members.required("password", members.secret("password", maxBytes: Limits.credentialBytes))
        persistence = try members.choice("persistence", as: Persistence.self) ?? .forSession
        _ = try members.string("domain")
        if let problem { throw members.wrong(problem.member, problem.expected) }
    }

    /// What no scheme can send, or would send so that the server reads something else (RFC 7617 section 2).
    private var problem: (member: String, expected: String)? {
        if user.utf8.count > Limits.credentialBytes { return ("user", "at most \(Limits.credentialBytes) bytes") }
        if user.utf8.holdsControls { return ("user", "without control characters") }
        if password.withUnsafeBytes({ $0.holdsControls }) { return ("password", "without control characters") }
        return nil
    }
}

extension Sequence where Element == UInt8 {
    fileprivate var holdsControls: Bool { contains { $0 < 0x20 || $0 == 0x7F } }
}

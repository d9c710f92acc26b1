public import JSONText

/// `credential/list`: what is stored, all of it or for some spaces.
public struct CredentialListParams: Sendable, Equatable {
    public var pattern: SpacePattern?

    public init(_ json: JSON?) throws(InvalidParams) {
        pattern = try Members(json)["protectionSpace"].map { json throws(InvalidParams) in try SpacePattern(json) }
    }

    public init(pattern: SpacePattern?) { self.pattern = pattern }

    public var json: JSON { .object(["protectionSpace": pattern?.json]) }
}

/// `credential/store`: a credential is kept before any server has seen it.
public struct CredentialStoreParams: Sendable, Equatable {
    public var pattern: SpacePattern
    public var credential: LoginCredential

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, only: ["protectionSpace", "credential"])
        pattern = try SpacePattern(members.required("protectionSpace", members["protectionSpace"]))
        let given = try Credential(
            members.required("credential", members["credential"]), at: "params.credential")
        guard case .login(let credential) = given, [.password, .token].contains(credential.form) else {
            throw members.wrong("credential", "a user and a password, or a token")
        }
        if credential.form == .token, credential.persistence == .permanent {
            throw members.wrong("credential.persistence", "forSession: tokens are not written into the keyring")
        }
        if pattern.authenticationMethod == .ntlm, pattern.realm?.isEmpty == false {
            throw members.wrong("protectionSpace.realm", "absent: NTLM has no realms")
        }
        guard credential.persistence != .none else {
            throw members.wrong("credential.persistence", "forSession or permanent")
        }
        self.credential = credential
    }

    public init(pattern: SpacePattern, credential: LoginCredential) {
        self.pattern = pattern
        self.credential = credential
    }

    /// Holds the password: it must be written with `JSON.write(_:)`.
    public var json: JSON {
        ["protectionSpace": pattern.json, "credential": Credential.login(credential).json]
    }
}

/// `credential/forget`: one credential by its id, or all of some spaces.
public enum CredentialForgetParams: Sendable, Equatable {
    case id(CredentialID)
    case pattern(SpacePattern)

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, only: ["id", "protectionSpace"])
        if let text = try members.string("id") {
            guard members["protectionSpace"] == nil else {
                throw InvalidParams("params has both an id and a protectionSpace; one says what is meant")
            }
            guard let id = CredentialID(text) else { throw members.wrong("id", "an id of credential/list") }
            self = .id(id)
        } else if let space = members["protectionSpace"] {
            self = .pattern(try SpacePattern(space))
        } else {
            throw InvalidParams("params needs id or protectionSpace")
        }
    }

    public var json: JSON {
        switch self {
        case .id(let id): ["id": .string(id.text)]
        case .pattern(let pattern): ["protectionSpace": pattern.json]
        }
    }
}

/// `credential/setDefault`.
public struct CredentialReference: Sendable, Equatable {
    public var id: CredentialID

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, only: ["id"])
        guard let id = CredentialID(try members.required("id", members.string("id"))) else {
            throw members.wrong("id", "an id of credential/list")
        }
        self.id = id
    }

    public init(id: CredentialID) { self.id = id }

    public var json: JSON { ["id": .string(id.text)] }
}

/// Names a stored credential: `session:7`, or `keyring:` and the keyring's own name.
public enum CredentialID: Sendable, Hashable {
    case session(Int)
    case keyring(String)

    public init?(_ text: String) {
        if text.hasPrefix("session:"), let number = Int(text.dropFirst(8)) {
            self = .session(number)
        } else if text.hasPrefix("keyring:/"), text.utf8.count <= 512 {
            self = .keyring(String(text.dropFirst(8)))
        } else {
            return nil
        }
    }

    public var text: String {
        switch self {
        case .session(let number): "session:\(number)"
        case .keyring(let name): "keyring:\(name)"
        }
    }
}

/// One line of `credential/list`: everything but the secret.
public struct CredentialDescription: Sendable, Equatable {
    public var id: CredentialID
    public var pattern: SpacePattern
    /// `nil` for a token.
    public var user: ExactText?
    /// The Windows domain, where one was given apart from the user.
    public var domain: ExactText?
    /// What is good for this path and below only; `nil` for the whole server.
    public var path: ExactText?
    /// Since 1970.
    public var expiresAt: Duration?
    public var persistence: Persistence
    public var source: CredentialSource
    public var isDefault: Bool
    /// How long ago it was used last; `nil` when the broker does not know.
    public var lastUsed: Duration?

    public init(
        id: CredentialID, pattern: SpacePattern, user: ExactText?, domain: ExactText?, path: ExactText? = nil,
        expiresAt: Duration? = nil, persistence: Persistence,
        source: CredentialSource, isDefault: Bool, lastUsed: Duration?
    ) {
        self.id = id
        self.pattern = pattern
        self.user = user
        self.domain = domain
        self.path = path
        self.expiresAt = expiresAt
        self.persistence = persistence
        self.source = source
        self.isDefault = isDefault
        self.lastUsed = lastUsed
    }

    public var json: JSON {
        .object([
            "id": .string(id.text), "protectionSpace": pattern.json, "user": user?.json ?? .null,
            "domain": domain?.json, "path": path?.json,
            "expiresAt": expiresAt.map { .string(UTCTime.text($0.wholeMilliseconds)) },
            "persistence": .string(persistence.rawValue),
            "source": .string(source.rawValue),
            "isDefault": .boolean(isDefault), "lastUsedMs": lastUsed.map { .integer($0.wholeMilliseconds) },
        ])
    }
}

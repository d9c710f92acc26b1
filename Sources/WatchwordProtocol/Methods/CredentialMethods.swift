public import JSONText

/// `credential/list`: lists the stored credentials, all or only for some protection spaces.
public struct CredentialList: CallableMethod, Equatable {
    public static let name = "credential/list"

    public var pattern: SpacePattern?

    public init(_ members: Members) throws(InvalidParams) {
        pattern = try members.value("protectionSpace", as: SpacePattern.self)
    }

    public init(pattern: SpacePattern?) { self.pattern = pattern }

    public var json: JSON { ["protectionSpace": pattern?.json] }

    public static func json(_ result: (credentials: [CredentialDescription], keyring: KeyringDescription)) -> JSON {
        ["credentials": .array(result.credentials.map(\.json)), "keyring": result.keyring.json]
    }
}

/// `credential/store`: stores a credential without sending it to a server first.
public struct CredentialStore: CallableMethod, Equatable {
    public static let name = "credential/store"

    public var pattern: SpacePattern
    public var credential: LoginCredential

    public init(_ members: Members) throws(InvalidParams) {
        pattern = try members.required("protectionSpace", members.value("protectionSpace", as: SpacePattern.self))
        let given = try members.required("credential", members.value("credential", as: Credential.self))
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

    public var json: JSON {
        ["protectionSpace": pattern.json, "credential": Credential.login(credential).json]
    }

    public static func json(_ id: CredentialID) -> JSON { ["id": .string(id.text)] }
}

/// `credential/forget`: removes one credential by its id, or all of some protection spaces.
public enum CredentialForget: CallableMethod, Equatable {
    case id(CredentialID)
    case pattern(SpacePattern)

    public static let name = "credential/forget"

    public init(_ members: Members) throws(InvalidParams) {
        if let text = try members.string("id") {
            guard members["protectionSpace"] == nil else {
                throw InvalidParams("params must contain either id or protectionSpace, not both")
            }
            guard let id = CredentialID(text) else { throw members.wrong("id", "an id from credential/list") }
            self = .id(id)
        } else if let pattern = try members.value("protectionSpace", as: SpacePattern.self) {
            self = .pattern(pattern)
        } else {
            try members.refuseUnread()
            throw InvalidParams("params must contain id or protectionSpace")
        }
    }

    public var json: JSON {
        switch self {
        case .id(let id): ["id": .string(id.text)]
        case .pattern(let pattern): ["protectionSpace": pattern.json]
        }
    }

    public static func json(_ removed: Int) -> JSON { ["removed": .integer(removed)] }
}

/// `credential/setDefault`: makes a credential the default among several users of its protection space.
public struct CredentialSetDefault: CallableMethod, Equatable {
    public static let name = "credential/setDefault"

    public var id: CredentialID

    public init(_ members: Members) throws(InvalidParams) {
        guard let id = CredentialID(try members.required("id", members.string("id"))) else {
            throw members.wrong("id", "an id from credential/list")
        }
        switch id {
        case .session, .keyring: break
        case .trust, .certificate: throw members.wrong("id", "the id of a password or a token")
        }
        self.id = id
    }

    public init(id: CredentialID) { self.id = id }

    public var json: JSON { ["id": .string(id.text)] }
}

/// `credential/get`: releases a credential with its secret to a program that logs in itself, such as git. Denied unless the
/// configuration lists the program and the host (`credentials.hand-out`).
public struct CredentialGet: CallableMethod, Equatable {
    public static let name = "credential/get"

    public var pattern: SpacePattern
    /// The account; `nil` for the default. An account without a domain matches the user in every domain.
    public var account: Account?
    /// The path of the request. A credential that was stored for a path is valid at and below it.
    public var path: ExactText
    /// A token that was released before, and that its server has refused: another one is obtained, if the configuration says
    /// how.
    public var refusedToken: Secret?

    public init(_ members: Members) throws(InvalidParams) {
        pattern = try members.required("protectionSpace", members.value("protectionSpace", as: SpacePattern.self))
        let domain = try members.exactText("domain")
        account = try members.exactText("user").map { Account(user: $0, domain: domain) }
        path = try members.exactText("path") ?? "/"
        guard path.hasPrefix("/") else { throw members.wrong("path", "a path that begins with \"/\"") }
        refusedToken = try members.secret("refusedToken", maxBytes: Limits.credentialBytes)
    }

    public init(pattern: SpacePattern, account: Account?, path: ExactText = "/", refusedToken: Secret? = nil) {
        self.pattern = pattern
        self.account = account
        self.path = path
        self.refusedToken = refusedToken
    }

    public var json: JSON {
        [
            "protectionSpace": pattern.json, "user": account?.user.json,
            "domain": account?.domain?.json, "path": path.json,
            "refusedToken": refusedToken.flatMap { $0.withUnsafeBytes { JSON.string(secret: $0) } },
        ]
    }

    public static func json(_ result: (credential: LoginCredential, source: CredentialSource)) -> JSON {
        ["credential": Credential.login(result.credential).json, "source": .string(result.source.rawValue)]
    }
}

/// The state of the keyring as known to the broker.
public enum KeyringDescription: Sendable, Equatable {
    case unknown, usable
    case locked(reason: String)
    case unavailable(kind: String, reason: String)

    public var json: JSON {
        switch self {
        case .unknown: ["state": "unknown"]
        case .usable: ["state": "usable"]
        case .locked(let reason): ["state": "locked", "kind": "locked", "reason": .string(reason)]
        case .unavailable(let kind, let reason):
            ["state": "unavailable", "kind": .string(kind), "reason": .string(reason)]
        }
    }
}

/// `keyring/status`: queries the state of the keyring.
public struct KeyringStatus: ParameterlessMethod {
    public static let name = "keyring/status"
    public init() {}
    public static func json(_ keyring: KeyringDescription) -> JSON { keyring.json }
}

/// `keyring/unlock`: unlocks the keyring, which may show its own prompt.
public struct KeyringUnlock: CallableMethod {
    public static let name = "keyring/unlock"
    public init() {}

    public init(_ members: Members) throws(InvalidParams) {}

    public var json: JSON { [:] }

    public static func json(_ keyring: KeyringDescription) -> JSON { keyring.json }
}

public import JSONText

/// `credential/list`: what is stored, all of it or for some spaces.
public struct CredentialListParams: Sendable, Equatable {
    public var pattern: SpacePattern?

    public init(_ json: JSON?) throws(InvalidParams) {
        pattern = try Members(json)["protectionSpace"].map { json throws(InvalidParams) in try SpacePattern(json) }
    }

    public init(pattern: SpacePattern?) { self.pattern = pattern }

    public var json: JSON { ["protectionSpace": pattern?.json] }
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
        switch id {
        case .session, .keyring: break
        case .trust, .certificate: throw members.wrong("id", "that of a password or a token")
        }
        self.id = id
    }

    public init(id: CredentialID) { self.id = id }

    public var json: JSON { ["id": .string(id.text)] }
}

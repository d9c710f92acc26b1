public import JSONText

/// What an answer to a challenge can carry.
public enum Credential: Sendable, Equatable {
    /// To a server or a proxy that asks who is there: a password, a token, a header.
    case login(LoginCredential)
    /// To a server that asks for a client certificate.
    case certificate(CertificateCredential)
    /// That a server's certificate is good enough.
    case trust(TrustCredential)
    /// The one that the challenge proposed.
    case proposed
    /// One of those that the challenge listed in `knownUsers`.
    case stored(CredentialID)
}

extension Credential {
    /// Strict: a member that it does not know makes it invalid, so that a typing error cannot weaken a decision.
    public init(_ json: JSON?, at path: String) throws(InvalidParams) {
        let members = try Members(json, at: path)
        switch try members.required("type", members.string("type")) {
        case "password": self = .login(try LoginCredential(password: members))
        case "token": self = .login(try LoginCredential(token: members))
        case "header": self = .login(try LoginCredential(header: members))
        case "certificate": self = .certificate(try CertificateCredential(members))
        case "trust": self = .trust(try TrustCredential(members))
        case "proposed":
            try members.refuseMembers(otherThan: ["type"])
            self = .proposed
        case "stored":
            try members.refuseMembers(otherThan: ["type", "id"])
            guard let id = CredentialID(try members.required("id", members.string("id"))) else {
                throw members.wrong("id", "an id of knownUsers")
            }
            self = .stored(id)
        case let other:
            throw InvalidParams(
                "\(path).type \"\(other.shortened)\" is not known; one of: password, token, header, certificate, trust, proposed, stored"
            )
        }
    }

    /// May hold a secret: it must be written with `JSON.write(_:)`.
    public var json: JSON {
        switch self {
        case .proposed: ["type": "proposed"]
        case .stored(let id): ["type": "stored", "id": .string(id.text)]
        case .login(let login): login.json
        case .certificate(let certificate): certificate.json
        case .trust(let trust): trust.json
        }
    }
}

public import JSONText

/// A credential in the answer to a challenge.
public enum Credential: Sendable, Equatable {
    /// A login to a server or a proxy: a password, a token or a header.
    case login(LoginCredential)
    /// A client certificate.
    case certificate(CertificateCredential)
    /// A trust exception for a server certificate.
    case trust(TrustCredential)
    /// The credential that the challenge proposed.
    case proposed
    /// A stored credential that the challenge listed in `knownUsers`.
    case stored(CredentialID)
}

extension Credential: ClientValue {
    public init(_ members: Members) throws(InvalidParams) {
        switch try members.required("type", members.string("type")) {
        case "password": self = .login(try LoginCredential(password: members))
        case "token": self = .login(try LoginCredential(token: members))
        case "header": self = .login(try LoginCredential(header: members))
        case "certificate": self = .certificate(try CertificateCredential(members))
        case "trust": self = .trust(try TrustCredential(members))
        case "proposed": self = .proposed
        case "stored":
            guard let id = CredentialID(try members.required("id", members.string("id"))) else {
                throw members.wrong("id", "an id from knownUsers")
            }
            self = .stored(id)
        case let other:
            throw members.wrong(
                "type",
                "one of: password, token, header, certificate, trust, proposed, stored, not \"\(other.shortened)\"")
        }
    }

    /// May contain a secret: serialize it with `JSON.write(_:)`.
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

public import JSONText

/// One scheme that a server or proxy offers: a challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110
/// section 11.3).
public struct Offer: Sendable, Equatable {
    /// The name of the scheme, as the server wrote it.
    public var scheme: String
    public var realm: ExactText?
    /// The other parameters, unquoted, with lower-case names.
    public var params: [String: String]
    /// The text of the challenge in the field.
    public var raw: String
    /// Whether the broker can answer this scheme with a credential. For other schemes a client can provide the header value.
    public var supported: Bool
    /// The weaknesses of the challenge. Offers without a weakness are preferred.
    public var weak: [Weakness] = []

    public enum Weakness: String, Sendable {
        /// Basic without a realm.
        case noRealm
        /// Digest without `qop`: RFC 2069.
        case noQop
        /// The realm is not quoted.
        case unquotedRealm
    }

    public init(scheme: String, realm: ExactText?, params: [String: String], raw: String, supported: Bool) {
        self.scheme = scheme
        self.realm = realm
        self.params = params
        self.raw = raw
        self.supported = supported
    }

    public var authenticationMethod: AuthenticationMethod { AuthenticationMethod(scheme: scheme) }

    public var json: JSON {
        [
            "scheme": .string(scheme), "authenticationMethod": .string(authenticationMethod.rawValue),
            "realm": realm?.readable.json ?? .null,
            "params": .object(params.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value.readable)) }),
            "raw": .string(raw.readable),
            "supported": .boolean(supported),
            "weak": weak.isEmpty ? nil : .array(weak.map { .string($0.rawValue) }),
        ]
    }
}

/// The source of a credential.
public enum CredentialSource: String, Sendable, CaseIterable {
    /// The `credential` of the fetch.
    case explicit
    /// User and password in the URL.
    case url
    case session
    case keyring
    /// The answer of a subscribed client.
    case client
    /// The answer of an agent.
    case agent
    /// The Kerberos tickets of the user.
    case ambient
    /// The configured netrc file.
    case netrc
    /// A configured command.
    case command
}

/// The credential that the broker proposes for a challenge, without its secret.
public struct ProposedCredential: Sendable, Equatable {
    /// The user; `nil` for a credential without one.
    public var user: ExactText?
    /// Whether the credential has a password or another secret.
    public var hasPassword: Bool
    public var source: CredentialSource

    public init(user: ExactText?, hasPassword: Bool, source: CredentialSource) {
        self.user = user
        self.hasPassword = hasPassword
        self.source = source
    }

    public var json: JSON {
        [
            "user": user?.json ?? .null, "hasPassword": .boolean(hasPassword),
            "source": .string(source.rawValue),
        ]
    }
}

/// A challenge, as sent in `auth/challenge`.
public struct Challenge: Sendable, Equatable {
    public var protectionSpace: ProtectionSpace
    /// All schemes of the response in the server's order, including schemes that the broker cannot answer.
    public var offers: [Offer]
    public var proposedCredential: ProposedCredential?
    /// The matching stored credentials, if there are others than the proposed one.
    public var knownUsers: [KnownUser] = []
    /// The SHA-256 hash of the public key of the server's certificate, if the certificate was accepted by exception: the
    /// answer may reach another server.
    public var exceptionalKey: [UInt8]?
    /// The proxy to which the request for this server goes, if the program names it instead of the configuration.
    public var namedProxy: String?
    /// The facts of a TLS connection, if the challenge comes from TLS and not from HTTP.
    public var connection: ConnectionFacts?
    /// The `state` of the last answer, returned with the next round of a scheme; otherwise `nil`.
    public var state: ExactText?
    /// Whether the challenge goes to the handler of the fetch instead of the subscription of its connection.
    public var isForHandler = false
    /// Whether the server has accepted a stronger scheme before: in this realm, or in any realm if a stored credential
    /// without a realm is withheld. Stored credentials are not used.
    public var isDowngrade = false
    /// The realm in which the server has accepted a login at this path, if the realm of the challenge is new; otherwise
    /// `nil`.
    public var formerRealm: ExactText?
    /// Failed attempts of this fetch at this target, over all schemes.
    public var previousFailureCount: Int
    /// The allowed persistence of a credential that answers this challenge.
    public var persistenceAllowed: [Persistence]
    /// The limits of an answer that is stored for the session; `nil` if `persistenceAllowed` does not contain
    /// `forSession`.
    public var sessionLimits: SessionTimes?
    /// The response with the challenge; `nil` if the challenge comes from a connection or a failure.
    public var failureResponse: FailureResponse?
    /// The reason why the last answer could not be used, if the server did not refuse it.
    public var error: AnswerProblem?
    /// The login in a browser that provides a token; `nil` if there is none.
    public var login: TokenLogin?
    public var url: String
    public var method: String

    public init(
        protectionSpace: ProtectionSpace, offers: [Offer], proposedCredential: ProposedCredential?,
        previousFailureCount: Int, persistenceAllowed: [Persistence], failureResponse: FailureResponse?,
        error: AnswerProblem?, url: String, method: String
    ) {
        self.protectionSpace = protectionSpace
        self.offers = offers
        self.proposedCredential = proposedCredential
        self.previousFailureCount = previousFailureCount
        self.persistenceAllowed = persistenceAllowed
        self.failureResponse = failureResponse
        self.error = error
        self.url = url
        self.method = method
    }

    /// The additional members of the protection space of a challenge from TLS.
    public enum ConnectionFacts: Sendable, Equatable {
        case serverTrust(ServerTrustFacts)
        /// The issuers that the server accepts, in the form of RFC 4514.
        case clientCertificate(distinguishedNames: [String])
    }

    /// The times after which an answer that is stored for the session is removed from it.
    public struct SessionTimes: Sendable, Equatable {
        /// The time without use; `nil` if the answer is stored for `lifetime`, used or not.
        public var idle: Duration?
        /// The time since the answer.
        public var lifetime: Duration

        public init(idle: Duration?, lifetime: Duration) { (self.idle, self.lifetime) = (idle, lifetime) }

        var json: JSON {
            ["idleMs": idle.map { .integer($0.wholeMilliseconds) }, "lifetimeMs": .integer(lifetime.wholeMilliseconds)]
        }
    }

    public struct FailureResponse: Sendable, Equatable {
        public var status: Int
        public var headers: HeaderBlock

        public init(status: Int, headers: HeaderBlock) {
            self.status = status
            self.headers = headers
        }
    }

    /// The reason why an answer was not sent to the server.
    public enum AnswerProblem: String, Sendable {
        /// The credential equals one that was already refused in this fetch.
        case credentialAlreadyRefused
        /// The answer was `proposed`, but no credential with a password was proposed.
        case nothingProposed
        /// The scheme cannot represent the credential, such as a user name with a colon in Basic (RFC 7617 section 2).
        case credentialNotUsable
        /// The type of the credential is not in `accepts`.
        case credentialOfWrongType
        /// A token is not sent unencrypted: anyone on the network path could use it (RFC 6750 section 5.3).
        case connectionNotSecure
        /// The key is missing, cannot be read, or does not match the certificate.
        case certificateNotUsable
        /// Other users can read or change the key file.
        case keyExposed
        /// The file or token contains another certificate than the one accepted for the session.
        case certificateChanged
        /// The passphrase of the key, or the PIN of the token, is wrong or missing.
        case passphraseWrong
        /// Too many wrong PINs were sent to the token, or it reports that the next wrong PIN locks it.
        case pinNotTried
        /// The server refused the certificate.
        case certificateRefused
        /// The answer was `stored` with an id that the challenge did not list, or that can no longer be used.
        case credentialNotKnown
        /// The credential has expired (`expiresAt`).
        case credentialExpired
        /// The credential is for another path of the server.
        case credentialForOtherPath
        /// The fingerprint is not that of the server's certificate.
        case fingerprintWrong

        var text: String {
            switch self {
            case .credentialAlreadyRefused: "The server has already refused this credential in this fetch."
            case .nothingProposed: "There is no proposed credential with a password."
            case .credentialNotUsable: "This scheme cannot carry this user name or password."
            case .credentialOfWrongType: "This type of credential does not answer this challenge."
            case .connectionNotSecure: "A token is sent over https only."
            case .certificateNotUsable: "The certificate or its key cannot be read, or they do not belong together."
            case .keyExposed: "Other users can read or change the private key file. Run \"chmod 600\" on it."
            case .certificateChanged: "The file or token holds another certificate than the one accepted before."
            case .passphraseWrong: "The passphrase of the key, or the PIN of the token, is wrong or missing."
            case .pinNotTried: "The PIN was not tried, because one more wrong PIN may lock the token."
            case .certificateRefused: "The server has refused the client certificate."
            case .credentialNotKnown: "This stored credential was not in the challenge, or can no longer be used."
            case .credentialExpired: "This credential has expired."
            case .credentialForOtherPath: "This credential is for another path of the server."
            case .fingerprintWrong: "This is not the fingerprint of the certificate that the server has shown."
            }
        }
    }
}

extension Challenge {
    /// The types of credentials that answer the challenge.
    public var accepts: [String] {
        switch protectionSpace.authenticationMethod {
        case .httpBasic, .httpDigest, .ntlm: ["password"]
        case .bearer: ["token"]
        // Kerberos tickets come from the environment, never from an answer.
        case .negotiate: []
        case .other: ["header"]
        case .clientCertificate: ["certificate"]
        case .serverTrust: ["trust"]
        }
    }

    /// The members of `auth/challenge` that describe the challenge itself.
    public var json: JSON {
        [
            "protectionSpace": spaceJSON,
            "offers": .array(offers.map(\.json)),
            "proposedCredential": proposedCredential?.json ?? .null,
            "knownUsers": knownUsers.isEmpty ? nil : .array(knownUsers.map(\.json)),
            "previousFailureCount": .integer(previousFailureCount),
            "failureResponse": failureResponse?.json ?? .null,
            "error": error.map { ["kind": .string($0.rawValue), "message": .string($0.text)] } ?? .null,
            "accepts": .array(accepts.map { .string($0) }),
            "persistenceAllowed": .array(persistenceAllowed.map { .string($0.rawValue) }),
            "sessionLimits": sessionLimits?.json,
            "state": state?.json, "downgrade": isDowngrade ? true : nil, "formerRealm": formerRealm?.readable.json,
            "login": login?.json,
            "certificateException": exceptionalKey.map { .string(Hexadecimal.text($0)) },
            "namedProxy": namedProxy.map { .string($0) },
            "url": .string(url), "method": .string(method),
        ]
    }

    private var spaceJSON: JSON {
        let space = protectionSpace.json(isSecure: protectionSpace.receivesCredentialSecurely && exceptionalKey == nil)
        return switch connection {
        case nil: space
        case .serverTrust(let facts): space.adding(["serverTrust": facts.json])
        case .clientCertificate(let names): space.adding(["distinguishedNames": .array(names.map { .string($0) })])
        }
    }
}

extension Challenge.FailureResponse {
    var json: JSON { ["status": .integer(status), "headers": headers.json, "rawBytes": headers.rawBytes()] }
}

extension [HeaderField] {
    /// The fields as a list of pairs.
    public var json: JSON { .pairs(map { ($0.name.readable, $0.value.readable) }) }

    /// The bytes, in base64, of the reason phrase and the values that are not UTF-8; `nil` if there are none.
    public func rawBytes(reason: String = "") -> JSON? {
        func encoded(_ text: String) -> JSON? {
            text.isMarked ? .string(text.headerBytes.withUnsafeBytes(Base64.encode)) : nil
        }
        let values = indices.filter { self[$0].value.isMarked }.map { (String($0), encoded(self[$0].value)) }
        guard reason.isMarked || !values.isEmpty else { return nil }
        return ["reason": encoded(reason), "headers": values.isEmpty ? nil : .object(values)]
    }
}

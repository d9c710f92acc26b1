public import JSONText

/// One scheme that a server offers, out of a `WWW-Authenticate` field (RFC 9110 section 11.3).
public struct Offer: Sendable, Equatable {
    /// As the server wrote it.
    public var scheme: String
    public var realm: ExactText?
    /// The other parameters, unquoted, names in small letters.
    public var params: [String: String]
    /// The challenge as it stood in the field.
    public var raw: String
    /// Whether the broker makes the answer by itself out of a credential. For what it does not know the client can make a
    /// header.
    public var supported: Bool
    /// What is old or sloppy about it; a scheme without such a weakness is preferred.
    public var weak: [Weakness] = []

    public enum Weakness: String, Sendable {
        /// Basic without a realm.
        case noRealm
        /// Digest without `qop`: RFC 2069.
        case noQop
        /// The realm stands without quotation marks.
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
            "realm": realm?.json ?? .null,
            "params": .object(params.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) }),
            "raw": .string(raw),
            "supported": .boolean(supported),
            "weak": weak.isEmpty ? nil : .array(weak.map { .string($0.rawValue) }),
        ]
    }
}

/// Which of its sources a credential came from.
public enum CredentialSource: String, Sendable, CaseIterable {
    /// The fetch's own `credential`.
    case explicit
    /// User and password in the URL.
    case url
    case session
    case keyring
    /// An answer of the subscribed client.
    case client
    /// An answer of a desktop agent.
    case agent
    /// The Kerberos tickets of the user.
    case ambient
    /// The netrc file, where the configuration names one.
    case netrc
}

/// What the broker has at hand for a challenge, without its secret.
public struct ProposedCredential: Sendable, Equatable {
    /// `nil` for a credential without one.
    public var user: ExactText?
    /// Or another secret.
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

/// A question of a server that somebody has to answer: what `auth/challenge` carries of it.
public struct Challenge: Sendable, Equatable {
    public var protectionSpace: ProtectionSpace
    /// All schemes of the response in the server's order, those that the broker cannot answer too.
    public var offers: [Offer]
    public var proposedCredential: ProposedCredential?
    /// Stored credentials that fit, where the proposed one is not all there is.
    public var knownUsers: [KnownUser] = []
    /// What a connection has shown, where it is not HTTP that asks.
    public var connection: ConnectionFacts?
    /// What the last answer has left to be given back with the next round; `nil` outside a scheme of several rounds.
    public var state: ExactText?
    /// It goes to the handler of the fetch, and not to the subscription of its connection.
    public var isForHandler = false
    /// The server has accepted a stronger scheme in this realm before: what is stored was not used.
    public var isDowngrade = false
    /// Failed attempts of this fetch at this target, over all schemes.
    public var previousFailureCount: Int
    /// How long a credential may be kept that answers this.
    public var persistenceAllowed: [Persistence]
    /// The response that challenges; `nil` where a connection or a failure raises the question.
    public var failureResponse: FailureResponse?
    /// Why the last answer could not be used, where it was not the server that refused it.
    public var error: AnswerProblem?
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

    /// What stands in the protection space of a challenge that a connection has raised.
    public enum ConnectionFacts: Sendable, Equatable {
        case serverTrust(ServerTrustFacts)
        /// The issuers that the server accepts, as RFC 4514 writes them.
        case clientCertificate(distinguishedNames: [String])
    }

    public struct FailureResponse: Sendable, Equatable {
        public var status: Int
        public var headers: [HeaderField]

        public init(status: Int, headers: [HeaderField]) {
            self.status = status
            self.headers = headers
        }
    }

    /// Why an answer was not sent to the server.
    public enum AnswerProblem: String, Sendable {
        /// Equal to one that this fetch has already seen refused.
        case credentialAlreadyRefused
        /// `proposed`, where nothing with a password was proposed.
        case nothingProposed
        /// The scheme cannot carry it: Basic has no way to send a user name with a colon (RFC 7617 section 2).
        case credentialNotUsable
        /// Not of a kind that answers this challenge: what does is in `accepts`.
        case credentialOfWrongType
        /// A token in the clear can be used by everybody on the way (RFC 6750 section 5.3).
        case connectionNotSecure
        /// There is no key, or it cannot be read, or it is not the certificate's.
        case certificateNotUsable
        /// Other users can read or change the file of the key.
        case keyExposed
        /// The file or token holds another certificate than the one that was accepted for the session.
        case certificateChanged
        /// The passphrase of the key, or the PIN of the token, is wrong or missing.
        case passphraseWrong
        /// The token was given too many wrong PINs, or says that the next one locks it.
        case pinNotTried
        /// The server has refused the certificate.
        case certificateRefused
        /// `stored` with an id that the challenge did not list, or that cannot be used any longer.
        case credentialNotKnown
        /// Its time (`expiresAt`) has passed.
        case credentialExpired
        /// It is for another path of the server.
        case credentialForOtherPath
        /// Not the fingerprint of the certificate that was shown.
        case fingerprintWrong

        var text: String {
            switch self {
            case .credentialAlreadyRefused: "The server has already refused this credential in this fetch."
            case .nothingProposed: "There is no proposed credential with a password."
            case .credentialNotUsable: "This scheme cannot carry this user name or password."
            case .credentialOfWrongType: "This kind of credential does not answer this challenge."
            case .connectionNotSecure: "A token is sent over https only."
            case .certificateNotUsable: "The certificate or its key cannot be read, or they do not belong together."
            case .keyExposed: "Other users can read or change the private key file. Run \"chmod 600\" on it."
            case .certificateChanged: "The file or token holds another certificate than the one accepted before."
            case .passphraseWrong: "The passphrase of the key, or the PIN of the token, is wrong or missing."
            case .pinNotTried: "The PIN was not tried, because one more wrong PIN may lock the token."
            case .certificateRefused: "The server has refused the client certificate."
            case .credentialNotKnown: "This is no stored credential that the challenge listed and that can be used."
            case .credentialExpired: "This credential has expired."
            case .credentialForOtherPath: "This credential is for another path of the server."
            case .fingerprintWrong: "This is not the fingerprint of the certificate that the server has shown."
            }
        }
    }
}

extension Challenge {
    /// Which types of credential answer it.
    public var accepts: [String] {
        switch protectionSpace.authenticationMethod {
        case .httpBasic, .httpDigest, .ntlm: ["password"]
        case .bearer: ["token"]
        // Tickets are had from elsewhere, or not at all.
        case .negotiate: []
        case .other: ["header"]
        case .clientCertificate: ["certificate"]
        case .serverTrust: ["trust"]
        }
    }

    /// The members of `auth/challenge` that come from the challenge itself.
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
            "state": state?.json, "downgrade": isDowngrade ? true : nil,
            "url": .string(url), "method": .string(method),
        ]
    }

    private var spaceJSON: JSON {
        switch connection {
        case nil: protectionSpace.json
        case .serverTrust(let facts): protectionSpace.json.adding(["serverTrust": facts.json])
        case .clientCertificate(let names):
            protectionSpace.json.adding(["distinguishedNames": .array(names.map { .string($0) })])
        }
    }
}

extension Challenge.FailureResponse {
    var json: JSON { ["status": .integer(status), "headers": headers.json] }
}

extension [HeaderField] {
    /// A list of pairs.
    public var json: JSON { .pairs(map { ($0.name, $0.value) }) }
}

public import WatchwordProtocol

/// A request of the broker itself to an authorization server, or for the metadata of a resource. Redirects are not followed.
public struct OAuthRequest: Sendable, Equatable {
    public let url: FetchURL
    /// The body; `nil` for a GET request.
    public private(set) var body: [UInt8]?
    public private(set) var headers: [HeaderField] = [HeaderField("Accept", "application/json")]
    /// The value of `Authorization`; `nil` for none.
    public private(set) var authorization: Secret?
    /// Whether the broker logs in to the server with the credentials of the user, as for any other URL.
    public private(set) var usesCredentials = false
    /// Whether a person may be asked for these credentials.
    public private(set) var mayAsk = true
    /// Whether to log in without a challenge of the server, which would answer anyone.
    public private(set) var needsLogin = false

    /// A request for a document.
    init(document url: FetchURL) { self.url = url }

    /// A request with the parameters `form`.
    init(_ url: FetchURL, form: [(name: String, value: Secret)], client: OAuthClient, _ server: AuthorizationServer) {
        self.url = url
        var fields = form
        if let secret = client.secret, !server.takesSecretInBody {
            authorization = Self.basic(client.id, secret)
        } else {
            fields.append(("client_id", Secret(joining: [.text(client.id)])))
            if let secret = client.secret { fields.append(("client_secret", secret)) }
        }
        set(fields)
    }

    /// Registers a client (RFC 7591 section 3.1).
    init(registration url: FetchURL, _ metadata: [UInt8]) {
        self.url = url
        body = metadata
        headers.append(HeaderField("Content-Type", "application/json"))
    }

    /// A request to the token service of a container registry.
    init(registry url: FetchURL, needsLogin: Bool, mayAsk: Bool) {
        self.url = url
        (usesCredentials, self.needsLogin, self.mayAsk) = (true, needsLogin, mayAsk)
    }

    /// Whether this is a request for a public document, whose reply is the same for some time.
    public var isDocument: Bool { body == nil && authorization == nil && !usesCredentials }

    private mutating func set(_ fields: [(name: String, value: Secret)]) {
        var text: [UInt8] = []
        for (name, value) in fields {
            if !text.isEmpty { text.append(UInt8(ascii: "&")) }
            text += Array("\(name)=".utf8) + value.withUnsafeBytes(OAuthText.formEncoded)
        }
        body = text
        headers.append(HeaderField("Content-Type", "application/x-www-form-urlencoded"))
    }

    mutating func add(_ field: HeaderField) { headers.append(field) }

    /// The secret of a client as RFC 6749 section 2.3.1 demands it: both parts encoded as in a form.
    private static func basic(_ id: String, _ secret: Secret) -> Secret {
        let encoded = secret.withUnsafeBytes(OAuthText.formEncoded)
        let password = encoded.withUnsafeBytes { Secret(copying: $0) }
        return BasicScheme.authorization(
            for: LoginCredential(user: ExactText(OAuthText.formEncoded(id)), password: password))
    }
}

/// A client of an authorization server: this broker.
struct OAuthClient: Sendable, Equatable {
    let id: String
    let secret: Secret?
}

/// The reply to an `OAuthRequest`.
public struct OAuthReply: Sendable, Equatable {
    public let status: Int
    public let headers: HeaderBlock
    public let body: [UInt8]

    public init(status: Int, headers: HeaderBlock = [], body: [UInt8]) {
        (self.status, self.headers, self.body) = (status, headers, body)
    }

    /// Whether the server has asked for user and password.
    var asksForPassword: Bool {
        ChallengeHeader.parse(fields: headers.values(of: "WWW-Authenticate")).contains {
            [.httpBasic, .httpDigest].contains($0.authenticationMethod)
        }
    }
}

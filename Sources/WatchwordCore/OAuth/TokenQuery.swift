public import WatchwordProtocol

/// The need of a fetch for a token.
public struct TokenQuery: Sendable, Equatable {
    public let rule: OAuthRule
    /// The URL of the request that was challenged.
    public let url: FetchURL
    public private(set) var challenge: BearerParameters
    /// Whether a token that was obtained without a person was refused, so that a person has to log in again.
    public private(set) var needsLogin: Bool
    /// Whether the program may use a stored login. If not, none is used or renewed before a person has consented.
    public private(set) var isConsented: Bool
    /// Whether there is a respondent for a login.
    public private(set) var mayAsk: Bool
    /// The programs that may share the token; `nil` for all.
    var audience: Partition?
    /// The paths of other tables inside that of this one.
    public internal(set) var excludedPaths: [ExactText] = []
    /// When the challenge arrived, and the fetch began to wait.
    public internal(set) var since = Duration.zero
    /// The client in whose session a login is stored that no keyring keeps; `nil` for that of all.
    var owner: ClientTag?

    /// Two fetches with the same purpose share one token.
    public var purpose: Purpose {
        Purpose(
            resource: rule.resource, realm: rule.flow == .registry ? challenge.realm : nil, service: challenge.service,
            scopes: scopes, needsLogin: needsLogin, isInsufficient: challenge.isInsufficient, isConsented: isConsented,
            audience: audience, owner: owner)
    }

    public struct Purpose: Sendable, Hashable {
        public let resource: String
        let realm: String?
        let service: String?
        let scopes: [String]
        let needsLogin: Bool
        /// A grant without the scope answers a first challenge, but not one that refuses its token.
        let isInsufficient: Bool
        let isConsented: Bool
        let audience: Partition?
        public let owner: ClientTag?
    }

    /// The URL, without its query.
    public var page: Page { Page(resource: rule.resource, path: url.path, owner: owner) }

    public struct Page: Sendable, Hashable {
        public let resource: String
        /// `nil` for all URLs of the table.
        let path: ExactText?
        /// The client with a session of its own; `nil` if clients share one.
        public let owner: ClientTag?

        public var table: Page { Page(resource: resource, path: nil, owner: owner) }
    }

    /// The query that renews the token without a person; `nil` for a token that is renewed only when it is needed.
    public var withoutPerson: TokenQuery? {
        guard rule.flow != .registry else { return nil }
        var (query, challenge) = (self, challenge)
        challenge.isInsufficient = false
        (query.challenge, query.needsLogin, query.isConsented, query.mayAsk) = (challenge, false, true, false)
        query.audience = nil
        return query
    }

    /// Returns the query of a fetch with another respondent, or without one.
    public func asking(_ mayAsk: Bool) -> TokenQuery {
        var query = self
        query.mayAsk = mayAsk
        return query
    }

    /// Creates a query for a token without a challenge and without a person.
    /// - Parameter owner: the client in whose session a login may be; `nil` if clients share one.
    init(_ rule: OAuthRule, for url: FetchURL, of owner: ClientTag?) {
        self.init(rule: rule, url: url, challenge: BearerParameters(), needsLogin: false, mayAsk: false)
        self.owner = owner
    }

    init(
        rule: OAuthRule, url: FetchURL, challenge: BearerParameters, needsLogin: Bool, isConsented: Bool = true,
        mayAsk: Bool
    ) {
        (self.rule, self.url, self.challenge) = (rule, url, challenge)
        (self.needsLogin, self.isConsented, self.mayAsk) = (needsLogin, isConsented, mayAsk)
    }

    /// The scopes to request: those of the configuration, or else of the challenge. Missing ones are added to both.
    var scopes: [String] {
        let known = rule.scopes.isEmpty || rule.flow == .registry ? challenge.scopes : rule.scopes
        return known.united(with: challenge.isInsufficient ? challenge.scopes : [])
    }
}

/// The parameters of a challenge for `Bearer` that say where to get a token (RFC 6750 section 3, RFC 9728 section 5.1).
public struct BearerParameters: Sendable, Equatable {
    public var realm: String?
    public var service: String?
    /// The URL of the metadata of the resource.
    public var metadata: String?
    public var scopes: [String] = []
    /// Whether a token was sent whose scope is insufficient.
    public var isInsufficient = false

    public init() {}

    init(_ parameters: [String: String], realm: ExactText?) {
        self.realm = realm?.string.percentEncodingMarks
        (service, metadata) = (parameters["service"], parameters["resource_metadata"]?.percentEncodingMarks)
        scopes = (parameters["scope"] ?? "").split(separator: " ").map(String.init).filter(\.isScope)
        isInsufficient = parameters["error"] == "insufficient_scope"
    }
}

extension LoginCredential {
    /// Returns after which time a token is renewed without a person; `nil` if it does not expire, or lives so long that it is
    /// renewed after a challenge.
    public func renewalWait(sinceEpoch: Duration) -> Duration? {
        guard let left = expiresAt.map({ $0 - sinceEpoch }), left < .seconds(24 * 3600) else { return nil }
        return left * 4 / 5
    }
}

/// The end of the search for a token.
public enum TokenOutcome: Sendable, Equatable {
    case token(LoginCredential)
    /// A person has to log in; the token arrives as the answer to the question about it.
    case login(TokenLogin)
    /// There is a stored login, which the program may not use before a person has consented.
    case needsConsent
    /// There is no token, and no respondent for a login.
    case nothing
    case failed(FetchFailure)
}

extension String {
    /// Whether this can be a scope (RFC 6749 section 3.3).
    var isScope: Bool { !isEmpty && utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C } }
}

extension [String] {
    /// The elements of both, sorted and without duplicates.
    func united(with other: [String]) -> [String] { Set(self).union(other).sorted() }
}

/// The parameters of a request for a token that say what the token is for.
struct TokenTarget: Sendable {
    /// The value of `resource` in requests (RFC 8707).
    var resource: String?
    var scopes: [String]
    /// The path of the resource, if it was found by its metadata.
    var path: ExactText?

    typealias Parameter = (name: String, value: Secret)

    var resourceParameter: [Parameter] { Self.parameter("resource", resource) }

    var scopeParameter: [Parameter] { Self.parameter("scope", scopes.isEmpty ? nil : scopes.joined(separator: " ")) }

    private static func parameter(_ name: String, _ value: String?) -> [Parameter] {
        value.map { [(name, Secret(joining: [.text($0)]))] } ?? []
    }
}

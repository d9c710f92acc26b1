public import WatchwordProtocol

/// How tokens for the URLs of one resource are obtained: a table `[oauth."URL"]` of the configuration.
public struct OAuthRule: Sendable, Equatable {
    /// The way in which a token is obtained.
    public enum Flow: String, Sendable, CaseIterable {
        /// Authorization code with PKCE and a redirect to the loopback interface (RFC 7636, RFC 8252).
        case browser
        /// Device authorization (RFC 8628): a person enters a code on any device.
        case device
        /// Client credentials (RFC 6749 section 4.4): no person is involved.
        case clientCredentials = "client-credentials"
        /// The token service of a container registry, named by `realm` in the challenge.
        case registry
    }

    /// The resource: the URLs with this scheme, host and port whose path is this one or below it. Without a trailing slash.
    public var resource: String
    /// The issuer identifier of the authorization server (RFC 8414 section 2), byte for byte; for `registry` the origin of the
    /// token service. `nil` to find it by `resource_metadata` (RFC 9728).
    public var issuer: String?
    /// The client id; `nil` only if `registersClient`.
    public var clientID: String?
    /// The secret of a confidential client.
    public var clientSecret: Secret?
    /// The scopes to request; empty for those that the challenge names.
    public var scopes: [String] = []
    /// `nil` for `browser`, or `device` if the server has no authorization endpoint.
    public var flow: Flow?
    /// The port of the redirect URI; `nil` for an ephemeral one.
    public var redirectPort: Int?
    /// The value of `resource` in requests for tokens (RFC 8707); `nil` for that of the resource's metadata, if there is any.
    public var resourceIndicator: String?
    /// Whether a client may be registered at the server (RFC 7591).
    public var registersClient = false
    /// Whether tokens are bound to a key of the broker (RFC 9449), where the server offers it.
    public var usesDPoP = true
    /// Whether tokens can be obtained: `false` if the file with the secret has a problem. Such a rule still matches its URLs, so
    /// that no rule for a shorter path applies to them.
    public var isUsable = true

    public init(resource: String) { self.resource = resource }
}

/// The configured rules for tokens, by URL.
public struct OAuthRules: Sendable {
    /// The rules of each origin with their paths, those for the longest path first.
    private let rules: [Origin: [(path: ExactText, rule: OAuthRule)]]

    /// A rule whose resource is not a URL of servers matches nothing.
    public init(_ rules: [OAuthRule]) {
        var byOrigin: [Origin: [(path: ExactText, rule: OAuthRule)]] = [:]
        for rule in rules {
            guard let url = try? FetchURL(rule.resource) else { continue }
            byOrigin[url.origin, default: []].append((url.path, rule))
        }
        self.rules = byOrigin.mapValues { rules in
            rules.sorted { PathRange.length(of: $0.path) > PathRange.length(of: $1.path) }
        }
    }

    /// Returns the rule for the longest path that contains the URL; `nil` if there is none, or if its tokens cannot be obtained.
    ///
    /// A path contains the paths that begin with all of its segments, in whatever equivalent form they are written. A URL that
    /// a server might also read as one in an inner path has no rule.
    public func rule(for url: FetchURL) -> OAuthRule? {
        let found = rules[url.origin]?.first { PathRange.path($0.path, covers: url.path) }
        guard let found, found.rule.isUsable else { return nil }
        // A whole origin without other tables cannot be left.
        let isAlone = found.path == "/" && rules[url.origin]?.count == 1
        // guard: oauth-hidden-segments
        guard isAlone || !HiddenSegments.leadUp(in: url.loginPath) && !url.isAmbiguous else { return nil }
        guard !innerPaths(of: found.rule).contains(where: { PathRange.path($0, mayCover: url.path) }) else {
            return nil
        }
        return found.rule
    }

    /// Returns the query for a token that can be obtained without a person.
    /// - Parameter owner: the client in whose session a login may be; `nil` if clients share one.
    public func query(for url: FetchURL, of owner: ClientTag?) -> TokenQuery? {
        guard let rule = rule(for: url) else { return nil }
        var query = TokenQuery(rule, for: url, of: owner)
        query.excludedPaths = innerPaths(of: rule)
        return query
    }

    /// Returns the paths of other rules inside that of `rule`, which have tokens of their own.
    public func innerPaths(of rule: OAuthRule) -> [ExactText] {
        guard let url = try? FetchURL(rule.resource) else { return [] }
        return (rules[url.origin] ?? []).map(\.path).filter {
            !PathRange.path($0, covers: url.path) && PathRange.path(url.path, covers: $0)
        }
    }

    /// Whether a query that was made with earlier rules would be the same with these.
    public func isCurrent(_ query: TokenQuery) -> Bool {
        rules.values.contains { $0.contains { $0.rule == query.rule } }
            && innerPaths(of: query.rule) == query.excludedPaths
    }
}

public import WatchwordProtocol

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
}

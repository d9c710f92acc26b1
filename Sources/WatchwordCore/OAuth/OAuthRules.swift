public import WatchwordProtocol

/// The rules of the configuration by which tokens are obtained.
public struct OAuthRules: Sendable {
    private let rules: [OAuthRule]

    public init(_ rules: [OAuthRule] = []) { self.rules = rules }

    /// Returns the rule of the narrowest resource that contains `url`.
    public func rule(for url: FetchURL) -> OAuthRule? {
        rules.first { rule in
            guard let resource = try? FetchURL(rule.resource) else { return false }
            return resource.origin == url.origin && LoginCredential.path(resource.path, covers: url.path)
        }
    }
}

internal import COAuthPresets
public import WatchwordCore
internal import WatchwordProtocol

/// The rules for well-known hosts, from contrib/oauth-presets.toml.
public enum OAuthPresets {
    /// The rules in the order of a configuration; empty if the file has a problem, which a test excludes.
    public static let rules: [OAuthRule] = ((try? settings.get()) ?? Settings()).oauthRules

    static var settings: Result<Settings, InvalidSettings> {
        var count = 0
        let bytes = watchword_oauth_presets(&count)
        return SettingsFile.parse(Array(UnsafeBufferPointer(start: bytes, count: count)))
    }

    /// Returns these rules and the presets of the other resources.
    public static func completing(_ rules: [OAuthRule]) -> [OAuthRule] {
        let resources = Set(rules.map(\.resource))
        return OAuthRule.inOrder(rules + Self.rules.filter { !resources.contains($0.resource) })
    }
}

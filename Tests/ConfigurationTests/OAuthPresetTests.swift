import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Configuration

/// contrib/oauth-presets.toml, which is built in.
@Suite struct OAuthPresetTests {
    @Test func theFileHasNoProblems() throws {
        let found = try OAuthPresets.settings.get()
        #expect(found.oauthRules.count >= 4 && found.oauthRules == OAuthPresets.rules)
        // Nothing of a configuration but these tables.
        var rest = found
        rest.oauthRules = []
        #expect(rest == Settings())
    }

    @Test(arguments: [
        ("https://registry-1.docker.io", "https://auth.docker.io"), ("https://ghcr.io", "https://ghcr.io"),
        ("https://quay.io", "https://quay.io"), ("https://registry.gitlab.com", "https://gitlab.com"),
    ])
    func knowsTheTokenServiceOfARegistry(resource: String, service: String) throws {
        let rule = try #require(OAuthPresets.rules.first { $0.resource == resource })
        #expect(rule.issuer == service && rule.flow == .registry)
    }

    @Test func containsNoClientOfOurs() {
        #expect(!OAuthPresets.rules.isEmpty)
        for rule in OAuthPresets.rules {
            #expect(rule.clientID == nil && rule.clientSecret == nil && !rule.registersClient)
            #expect(rule.resource.hasPrefix("https://") && rule.issuer?.hasPrefix("https://") == true)
        }
    }

    @Test func aRuleOfTheUserReplacesAPreset() {
        var own = OAuthRule(resource: "https://ghcr.io")
        own.issuer = "https://other.example"
        own.flow = .registry
        let path = OAuthRule(resource: "https://quay.io/v2/of-mine/and/a/long/path")
        let found = OAuthPresets.completing([path, own])
        #expect(found.count == OAuthPresets.rules.count + 1)
        #expect(found.filter { $0.resource == own.resource } == [own])
        #expect(found.contains { $0.resource == "https://quay.io" })
        #expect(found.first == path && found == OAuthRule.inOrder(found))
        #expect(OAuthPresets.completing([]) == OAuthPresets.rules)
    }
}

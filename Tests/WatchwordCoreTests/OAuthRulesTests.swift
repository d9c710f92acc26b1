import Testing
import WatchwordProtocol

@testable import WatchwordCore

@Suite struct OAuthRulesTests {
    private static let resources = [
        "https://api.example/v1", "https://api.example/v1/admin", "https://open.example", "https://open.example/a%2Fb",
        "http://127.0.0.1:8080/v1", "https://api.example:8443",
    ]

    private func rules(_ resources: [String] = resources) -> OAuthRules { OAuthRules(resources.map(OAuthRule.init)) }

    private func found(_ url: String) throws -> String? { try rules().rule(for: FetchURL(url))?.resource }

    @Test(arguments: [
        ("https://api.example/v1", "https://api.example/v1"), ("https://api.example/v1/", "https://api.example/v1"),
        ("https://api.example/v1?x=/v2", "https://api.example/v1"),
        ("https://api.example/v1/a/b", "https://api.example/v1"),
        ("https://api.example/v1/admin/x", "https://api.example/v1/admin"),
        ("https://api.example/v1/administrator", "https://api.example/v1"),
        ("HTTPS://API.Example:443/v1/x", "https://api.example/v1"),
        ("https://api.example/x/../v1/y", "https://api.example/v1"),
        ("https://open.example/", "https://open.example"), ("https://OPEN.example/any/thing", "https://open.example"),
        ("https://open.example/a%2Fb/c", "https://open.example/a%2Fb"),
        ("https://open.example/a/c", "https://open.example"),
        ("http://127.0.0.1:8080/v1/x", "http://127.0.0.1:8080/v1"),
        ("https://api.example:8443/", "https://api.example:8443"),
    ])
    func findsTheLongestPath(url: String, resource: String) throws {
        #expect(try found(url) == resource)
        // The order of the rules does not matter.
        #expect(try rules(Self.resources.reversed()).rule(for: FetchURL(url))?.resource == resource)
    }

    @Test(arguments: [
        "https://api.example/", "https://api.example/v10", "https://api.example/v1x/y", "https://api.example/V1",
        "http://api.example/v1", "http://api.example:443/v1", "https://api.example:80/v1", "https://api.example:444/v1",
        "https://xapi.example/v1", "https://api.example.org/v1", "https://sub.api.example/v1",
        "https://api.example./v1",
        "http://open.example/", "http://127.0.0.1/v1", "http://127.0.0.1:8081/v1", "https://127.0.0.1:8080/v1",
        "http://localhost:8080/v1", "https://other.example/v1",
    ])
    func coversNoOtherOriginOrPath(url: String) throws {
        #expect(try found(url) == nil)
    }

    @Test func anAmbiguousTargetHasNoRuleOfAPath() throws {
        for path in ["/x/../v1/y", "/v1/./y", "/v1/a/%2e%2e/y"] {
            #expect(try rules().rule(for: FetchURL("https://api.example" + path, keepsTarget: true)) == nil)
            let whole = rules(["https://api.example"])
            #expect(try whole.rule(for: FetchURL("https://api.example" + path, keepsTarget: true)) != nil)
        }
    }

    @Test(arguments: [
        "https://api.example/v1/../secret", "https://api.example/v1/%2e%2e/secret",
        "https://api.example/v1/.%2E/secret",
        "https://api.example/v1/..%2Fsecret", "https://api.example/v1/..%2fsecret",
        "https://api.example/v1/%2e%2e%2fsecret",
        "https://api.example/v1/..%5Csecret", "https://api.example/v1/a%2F..%2F..%2Fsecret",
        "https://api.example/v1/%252e%252e/secret", "https://api.example/v1/%25252e%25252e/secret",
        "https://api.example/v1/..;/secret", "https://api.example/v1/..;x=y/secret",
        "https://api.example/v1/%2e%2e%3b/secret",
        "https://api.example/v1%2F..%2Fsecret", "https://api.example/v1/%2525252e%2525252e/secret",
        "https://api.example/v1/admin/..%2Fsecret",
        // Encoded more often than any server decodes.
        "https://api.example/v1/%2525252525252525",
    ])
    func encodedDotsAndSlashesDoNotEscape(url: String) throws {
        #expect(try found(url) == nil)
    }

    @Test(arguments: [
        "https://api.example/v1/group%2Fproject", "https://api.example/v1/a..b", "https://api.example/v1/...",
        "https://api.example/v1/100%25", "https://api.example/v1/.%2Fx", "https://api.example/v1/;/..x",
        "https://api.example/v1/%",
        "https://api.example/v1/%+1%2", "https://api.example/v1/%C3%BC",
    ])
    func otherEncodedCharactersAreAllowed(url: String) throws {
        #expect(try found(url) == "https://api.example/v1")
    }

    @Test(
        "Rule K10: a path is found in any equivalent form",
        arguments: [
            ("https://api.example/%76%31/x", "https://api.example/v1"),
            ("https://api.example/v1/%61dmin/x", "https://api.example/v1/admin"),
            ("https://api.example/%761/adm%69n", "https://api.example/v1/admin"),
            ("https://open.example/a%2fb/c", "https://open.example/a%2Fb"),
        ])
    func aPathIsFoundInAnyEquivalentForm(url: String, resource: String) throws {
        #expect(try found(url) == resource)
    }

    @Test(
        "Rule K10: a path that may be in an inner table has no rule",
        arguments: [
            "https://api.example/v1/%2561dmin/x", "https://api.example/v1/%252561dmin",
            "https://api.example/v1//admin/x",
            "https://api.example/v1/%2Fadmin", "https://api.example/v1/admin%2Fx", "https://api.example/v1/admin;a=b/x",
            "https://api.example/v1/;/admin", "https://api.example/v1/%2e%2fadmin", "https://api.example/v1/%5Cadmin",
            "https://open.example/a%252Fb", "https://open.example/a/b",
        ])
    func aPathThatMayBeInAnInnerTableHasNoRule(url: String) throws {
        #expect(try found(url) == nil)
    }

    @Test func aRuleForTheOriginCannotBeLeftUnlessItContainsAnother() throws {
        let whole = OAuthRule(resource: "https://open.example")
        let inner = OAuthRule(resource: "https://open.example/b")
        let url = try FetchURL("https://open.example/a/..%2F..%2Fb")
        #expect(OAuthRules([whole]).rule(for: url) == whole && OAuthRules([whole, inner]).rule(for: url) == nil)
    }

    @Test func twoFormsOfAPathAreNotInsideEachOther() throws {
        let long = OAuthRule(resource: "https://api.example/%61%61%61%61")
        let short = OAuthRule(resource: "https://api.example/aaaa")
        let narrow = OAuthRule(resource: "https://api.example/aaaa/x")
        let rules = OAuthRules([long, short, narrow])
        for rule in [long, short] { #expect(rules.innerPaths(of: rule) == ["/aaaa/x"]) }
        #expect(try rules.rule(for: FetchURL("https://api.example/aaaa/x/y")) == narrow)
        #expect(try rules.rule(for: FetchURL("https://api.example/aaaa/y")) != nil)
    }

    @Test func anUnusableRuleHidesThoseForShorterPaths() throws {
        var broken = OAuthRule(resource: "https://api.example/v1")
        broken.isUsable = false
        let rules = OAuthRules([OAuthRule(resource: "https://api.example"), broken])
        #expect(try rules.rule(for: FetchURL("https://api.example/v1/x")) == nil)
        #expect(try rules.rule(for: FetchURL("https://api.example/v2")) != nil)
    }

    @Test func withoutRulesNothingIsFound() throws {
        #expect(try OAuthRules([]).rule(for: FetchURL("https://api.example/v1")) == nil)
        #expect(try rules(["no URL"]).rule(for: FetchURL("https://api.example/v1")) == nil)
    }
}

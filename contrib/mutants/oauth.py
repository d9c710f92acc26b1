"""Guards of the configuration of OAuth, and of the search for tokens."""

from .statement import BODY, STATEMENT

OAUTH_CONFIGURATION = [
    ("oauth-url-user", '!authority.contains("@")', '!authority.contains("@@")', "ConfigurationTests.OAuthTests"),
    ("oauth-url-https", "|| Self.isThisMachine(host)", "|| !host.isEmpty", "ConfigurationTests.OAuthTests"),
    ("oauth-secret-needs-issuer", "&& rule.issuer == nil", '&& rule.issuer == ""', "ConfigurationTests.OAuthTests"),
    ("oauth-secret-file", BODY, "nil", "ConfigurationTests"),
    ("oauth-hidden-segments", "!HiddenSegments.leadUp(in: url.loginPath)", 'url.path != ""', "WatchwordCoreTests.OAuthRulesTests"),
]

OAUTH = [
    ("oauth-https", BODY, "true", "WatchwordCoreTests.TokenMachineDiscoveryTests"),
    ("oauth-loopback-named", STATEMENT, "func mayBeNamed(by namer: FetchURL) -> Bool { isSecureEnough }",
     "WatchwordCoreTests.OAuthMetadataTests"),
    ("oauth-metadata-origin", "url.origin == query.url.origin", "url.origin.port > 0",
     "WatchwordCoreTests.TokenMachineDiscoveryTests"),
    ("oauth-resource", "resource.origin == url.origin", "resource.origin.port > 0", "WatchwordCoreTests.OAuthMetadataTests"),
    ("oauth-issuer", "Self.isSame(named, issuer)", "!named.isEmpty", "WatchwordCoreTests.OAuthMetadataTests"),
    ("oauth-start-once", STATEMENT, "", "WatchwordCoreTests.TokenMachineLoginTests"),
    ("oauth-state", 'Self.isSame(fields["state"] ?? "", state)', 'fields["state"] != ""', "WatchwordCoreTests.BrowserLoginTests"),
    ("oauth-parameter-twice", STATEMENT, "fields[name] = value", "WatchwordCoreTests.BrowserLoginTests"),
    ("oauth-mix-up", "AuthorizationServer.isSame(issuer, server.issuer)", "!issuer.isEmpty",
     "WatchwordCoreTests.BrowserLoginTests"),
    ("oauth-issuer-missing", STATEMENT, "", "WatchwordCoreTests.BrowserLoginTests"),
    ("oauth-id-token", "expiry.map { .seconds($0) > sinceEpoch } ?? false", "expiry != nil",
     "WatchwordCoreTests.TokenReplyTests"),
    ("oauth-token-text", "(0x21...0x7E).contains($0) && $0 != 0x22", "$0 != 0", "WatchwordCoreTests.TokenReplyTests"),
    ("oauth-token-type", '["bearer", "dpop"].contains(type)', "type.utf8.count < 99", "WatchwordCoreTests.TokenReplyTests"),
    ("oauth-nobody-to-ask", STATEMENT, "", "WatchwordCoreTests.TokenMachineLoginTests"),
    ("oauth-denied-scope", "denied.isEmpty", "denied.count < 99", "WatchwordCoreTests.TokenMachineGrantTests"),
    ("oauth-token-service", "url.origin == service.origin", "service.origin.port > 0",
     "WatchwordCoreTests.TokenMachineRegistryTests"),
    ("oauth-once-for-each-purpose", STATEMENT, "_ = hop[offers.challenger].tokens.begin(query)",
     "WatchwordCoreTests.TokenFetchTests"),
    ("oauth-dpop-scheme", '"DPoP"', '"Bearer"', "WatchwordCoreTests.TokenFetchTests"),
    ("path-readings", BODY, 'Self.path(path ?? "/", covers: requested)', "WatchwordCoreTests.TokenFetchTests"),
    ("oauth-no-redirect", "= 0", "= 5", "Tests/EndToEnd/test_browser_login_attacks.py"),
    ("oauth-unlock-with-consent", " && $0.machine.query.isConsented", "", "BrokerTests.BrokerLoginTests"),
    ("oauth-owner-of-a-login", STATEMENT, "", "BrokerTests.BrokerLoginTests"),
]

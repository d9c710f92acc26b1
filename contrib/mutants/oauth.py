"""Guards of the configuration of OAuth, and of the search for tokens."""

from .statement import STATEMENT

OAUTH_CONFIGURATION = [
    ("oauth-url-user", '!authority.contains("@")', '!authority.contains("@@")', "ConfigurationTests.OAuthTests"),
    ("oauth-url-https", "|| Self.isThisMachine(host)", "|| !host.isEmpty", "ConfigurationTests.OAuthTests"),
    ("oauth-url-dot-segment", '.replacing("%2e", with: ".")', "", "ConfigurationTests.OAuthTests"),
    ("oauth-secret-needs-issuer", "&& rule.issuer == nil", '&& rule.issuer == ""', "ConfigurationTests.OAuthTests"),
    ("oauth-unusable-secret", "= false", "= true", "ConfigurationTests"),
    ("oauth-secret-size", "<= Limits.clientSecretBytes", "<= Limits.clientSecretBytes + 1", "ConfigurationTests"),
    ("oauth-secret-owner", "!= 0", "== 1", "ConfigurationTests"),
    ("oauth-secret-mode", "0o077", "0o022", "ConfigurationTests"),
    ("oauth-secret-reported-at-reload", STATEMENT, "", "Tests/EndToEnd/test_oauth_configuration.py"),
    ("oauth-first-secrets-wiped", STATEMENT, "", "Tests/EndToEnd/test_oauth_configuration.py"),
    ("oauth-rule-usable", ", found.rule.isUsable", "", "WatchwordCoreTests.OAuthRulesTests"),
    ("oauth-hidden-segments", "!HiddenSegments.leadUp(in: url.path)", 'url.path != ""', "WatchwordCoreTests.OAuthRulesTests"),
]

OAUTH = [
    ("oauth-https", "|| origin.isLoopback", "|| origin.port > 0", "WatchwordCoreTests.TokenMachineDiscoveryTests"),
    ("oauth-loopback-named", STATEMENT, "func mayBeNamed(by namer: FetchURL) -> Bool { isSecureEnough }", "WatchwordCoreTests.OAuthMetadataTests"),
    ("oauth-metadata-origin", "url.origin == query.url.origin", "url.origin.port > 0", "WatchwordCoreTests.TokenMachineDiscoveryTests"),
    ("oauth-resource", "resource.origin == url.origin", "resource.origin.port > 0", "WatchwordCoreTests.OAuthMetadataTests"),
    ("oauth-issuer", "Self.isSame(named, issuer)", "!named.isEmpty", "WatchwordCoreTests.OAuthMetadataTests"),
    ("oauth-state", 'Self.isSame(fields["state"] ?? "", state)', 'fields["state"] != ""', "WatchwordCoreTests.BrowserLoginTests"),
    ("oauth-parameter-twice", STATEMENT, "fields[name] = value", "WatchwordCoreTests.BrowserLoginTests"),
    ("oauth-mix-up", "AuthorizationServer.isSame(issuer, server.issuer)", "!issuer.isEmpty", "WatchwordCoreTests.BrowserLoginTests"),
    ("oauth-issuer-missing", STATEMENT, "", "WatchwordCoreTests.BrowserLoginTests"),
    ("oauth-id-token", "expiry.map { .seconds($0) > sinceEpoch } ?? false", "expiry != nil", "WatchwordCoreTests.TokenReplyTests"),
    ("oauth-token-text", "(0x21...0x7E).contains($0) && $0 != 0x22", "$0 != 0", "WatchwordCoreTests.TokenReplyTests"),
    ("oauth-token-type", '["bearer", "dpop"].contains(type)', "type.utf8.count < 99", "WatchwordCoreTests.TokenReplyTests"),
    ("oauth-nobody-to-ask", STATEMENT, "", "WatchwordCoreTests.TokenMachineLoginTests"),
    ("oauth-denied-scope", "denied.isEmpty", "denied.count < 99", "WatchwordCoreTests.TokenMachineGrantTests"),
    ("oauth-stored-before-use", "[.store(grant)]", "[.store(grant)] + finish(outcome, visit: visit)", "WatchwordCoreTests.TokenMachineGrantTests"),
    ("oauth-token-service", "url.origin == service.origin", "service.origin.port > 0", "WatchwordCoreTests.TokenMachineRegistryTests"),
    ("oauth-once-for-each-purpose", STATEMENT, "_ = search.situation[offers.challenger].tokens.begin(query.purpose)", "WatchwordCoreTests.TokenFetchTests"),
    ("oauth-nonce-once", "repeats.staleAnswers < 1", "repeats.staleAnswers < 2", "WatchwordCoreTests.TokenFetchTests"),
    ("oauth-dpop-scheme", '"DPoP"', '"Bearer"', "WatchwordCoreTests.TokenFetchTests"),
    ("path-hidden-segments", " && !HiddenSegments.leadUp(in: requested)", "", "WatchwordCoreTests.TokenFetchTests"),
    ("oauth-no-redirect", "= 0", "= 5", "Tests/EndToEnd/test_browser_login_attacks.py"),
    ("oauth-listener-host", 'answer.request.host == "127.0.0.1:\\(port)"', 'answer.request.host != ""', "Tests/EndToEnd/test_browser_login_attacks.py"),
    ("oauth-forget-token", "count > 0", "count > 9", "Tests/EndToEnd/test_browser_logins.py"),
]

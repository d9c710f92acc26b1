"""Guards of the configuration of OAuth."""

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

"""A credential is one unit: account, path, expiry and refresh token stay together."""

from .paths import CORE, FETCH

CREDENTIALS = [
    ("keyring-writes-domain", CORE + "Keyring/KeyringAttributes.swift",
     'attributes["domain"] = account.domain', 'attributes["domain"] = nil', "WatchwordCoreTests.StoredDomainTests"),
    ("keyring-reads-domain", CORE + "Keyring/KeyringAttributes.swift",
     'domain: attributes[method == .ntlm ? "domain" : windowsDomain])', "domain: nil)", "WatchwordCoreTests.StoredDomainTests"),
    ("keyring-keeps-item-without-domain", CORE + "Keyring/StoredCredential.swift",
     "!mayLackDomain && item.says", "item.says", "WatchwordCoreTests.StoredDomainTests"),
    ("session-account-domain", CORE + "Session/SessionCache.swift",
     "$0.space == space && $0.owner == owner && $0.credential.account == credential.account",
     "$0.space == space && $0.owner == owner && $0.credential.user == credential.user", "WatchwordCoreTests.StoredDomainTests"),
    ("consent-domain", FETCH + "FetchMachine+Consent.swift",
     "user: candidate.credential.shownAccount?.text)", "user: candidate.credential.shownUser)", "WatchwordCoreTests.StoredDomainTests"),
]

"""Guards of whole credentials: account, path, expiry and refresh token stay together."""

from .statement import BODY, STATEMENT

CREDENTIALS = [
    ("clearing-an-address", "address?.contains(listing.space) ?? true", "address == nil || listing.since >= .zero",
     "WatchwordCoreTests.ForgettingTests"),
    ("session-account-domain", "account == credential.account", "user == credential.user",
     "WatchwordCoreTests.StoredDomainTests"),
    ("session-expiry", " && !credential.isExpired(at: wallTime)", "", "WatchwordCoreTests.WholeCredentialTests"),
    ("session-path", BODY, "self", "WatchwordCoreTests.WholeCredentialTests"),
    ("ambiguous-path", BODY, "false", "WatchwordCoreTests.WholeCredentialTests"),
    ("keyring-ambiguous-path", "usable.contains", "!usable.isEmpty && covering.contains",
     "WatchwordCoreTests.WholeCredentialTests"),
    ("keyring-wider-than-session", STATEMENT, "", "WatchwordCoreTests.WholeCredentialTests"),
    ("path-resolved-readings", "[segments, resolved]", "[segments]", "WatchwordProtocolTests.PathRangeTests"),
    ("waiting-fetch-path", "== nil", "== nil || true", "WatchwordCoreTests.WholeCredentialTests"),
    ("keyring-narrower-than-session", " context", " credential.pathLength < 0 && context",
     "WatchwordCoreTests.WholeCredentialTests"),
    ("known-users-consent", STATEMENT, "!space.host.isEmpty", "WatchwordCoreTests.KnownUsersTests"),
    ("known-users-listed", "question.known.first(where: { $0.id == id }",
     "(question.known.first { $0.id == id } ?? question.known.first",
     "WatchwordCoreTests.KnownUsersTests"),
]

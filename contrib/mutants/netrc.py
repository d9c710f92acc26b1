"""Guards of the use of a netrc file."""

from .statement import STATEMENT

NETRC = [
    ("netrc-over-http", "!chain.isReadable(.server(origin)), ", "", "WatchwordCoreTests.NetrcFetchTests"),
    ("netrc-schemes", ", [.httpBasic, .httpDigest].contains(asked.authenticationMethod)", "",
     "WatchwordCoreTests.NetrcFetchTests"),
    ("netrc-weak-challenge", "asked.digest?.protection != .legacy && !space.lacksRealm",
     "(asked.digest?.protection != .legacy || true)",
     "WatchwordCoreTests.NetrcFetchTests"),
    ("netrc-downgrade", "!isDowngrade(asked, Challenger(space), context, .server)", "true", "WatchwordCoreTests.NetrcFetchTests"),
    ("netrc-undecided-keyring", "!isUndecidedInKeyring(asked, space, context)",
     "!isUndecidedInKeyring(asked, space, context) || true",
     "WatchwordCoreTests.NetrcFetchTests"),
    ("netrc-user", "user?.admits($0.account) ?? true", "_ in user != nil || user == nil", "WatchwordCoreTests.NetrcFetchTests"),
    ("netrc-port", "isAtDefaultPort", "true", "WatchwordCoreTests.NetrcFetchTests"),
    ("netrc-refused-once", " || attempt.source.isWithoutRealm", "",
     "WatchwordCoreTests.NetrcFetchTests"),
    ("netrc-while-locked", "allowsStorageNow(for: space, context)", "source == .netrc || allowsStorageNow(for: space, context)",
     "WatchwordCoreTests.NetrcFetchTests"),
    ("netrc-swallowed-keyword", "nil", "nil, word.line < before.line", "WatchwordProtocolTests.NetrcTests"),
    ("netrc-refused-to-others", "at: challenger", "in: space", "WatchwordCoreTests.NetrcFetchTests"),
    ("netrc-behind-a-failed-keyring", STATEMENT, "", "WatchwordCoreTests.NetrcFetchTests"),
    ("command-without-a-shell", "!isForShell", "!isForShell || true", "ConfigurationTests.OptionTests"),
    ("command-descriptors", STATEMENT, "", "Tests/EndToEnd/test_netrc.py"),
]

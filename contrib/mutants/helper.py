"""Guards of the programs that people use: the helper, the agent, the installer."""

from .statement import BODY, STATEMENT

DISPLAY = [
    ("display-host-end", BODY, "DisplayText.escaped(text.unicodeScalars.prefix(hostLimit))",
     "WatchwordProtocolTests.DisplayURLTests"),
    ("agent-host-whole", "-HOST_LIMIT:", ":HOST_LIMIT", "Tests/EndToEnd/test_agent_texts.py"),
    ("agent-opens-plain-addresses", " or not _ALLOWED.fullmatch(url)", "", "Tests/EndToEnd/test_shown_logins.py"),
    ("agent-opens-loopback-or-https", "is_here or is_elsewhere", "parts.scheme in ('http', 'https')", "Tests/EndToEnd/test_shown_logins.py"),
    ("agent-code-address-of-the-same-site", "is_same_site", "other", "Tests/EndToEnd/test_shown_logins.py"),
    ("agent-known-names-are-exact", " == user", ".lower() == user.lower()", "Tests/EndToEnd/test_agent.py"),
    ("agent-typed-pins", "any(one in text for one in _SECRET_ATTRIBUTES)", "False", "Tests/EndToEnd/test_agent.py"),
]

PLANTED_FILES = [
    ("part-file", BODY, "nil", "watchwordTests.ExistingFileTests"),
    ("planted-pipe", BODY, "false", "watchwordTests.ExistingFileTests"),
]

ARGUMENTS = [
    ("argument-text", "hide(bytes)", "_ = bytes", "watchwordTests.SecretArgumentsTests"),
    ("argument-query", STATEMENT, "", "watchwordTests.SecretArgumentsTests"),
]

CURL = [
    ("curl-refused", "verdict", 'verdict, option.long == "netrc"', "watchwordTests.CurlArgumentsTests"),
    ("curl-secret-abbreviation", "!first.takesValue", "first.takesValue || true", "watchwordTests.CurlArgumentsTests"),
    ("curl-verbose-secrets", "isSecret(field.name) ? redacted(field) : ", "", "watchwordTests.VerboseTests"),
]

INSTALLATION = [
    ("install-list-paths", "os.path.normpath(path) != path or ", "", "Tests/EndToEnd/test_install.py"),
    ("install-list-owner", STATEMENT, "", "Tests/EndToEnd/test_install.py"),
    ("install-folder-link", " or self.user == 0 and is_inside", "", "Tests/EndToEnd/test_install.py"),
    ("install-folder-owner", STATEMENT, "pass", "Tests/EndToEnd/test_install.py"),
    ("install-binaries", "== 0 and facts.st_mode & stat.S_IWOTH", "< 0", "Tests/EndToEnd/test_install.py"),
]

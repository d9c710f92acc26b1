"""Guards of the programs that people use: the helper, the agent, the installer."""

from .statement import STATEMENT

DISPLAY = [
    ("display-host-end", "suffix", "prefix", "WatchwordProtocolTests.DisplayURLTests"),
    ("display-host-whole", "259", "80", "WatchwordProtocolTests.DisplayURLTests"),
    ("display-text-end", "count - end", "count", "WatchwordProtocolTests.DisplayTextTests"),
    ("agent-host-whole", "-HOST_LIMIT:", ":HOST_LIMIT", "Tests/EndToEnd/test_agent_texts.py"),
    ("agent-sends-the-id-it-was-given", "identifier", "user", "Tests/EndToEnd/test_agent_known_users.py"),
    ("shell-known-names-are-exact", "name", "name or true", "Tests/EndToEnd/test_clients_known_users.py"),
    ("go-names-the-stored-login", ".ID", ".User", "Tests/EndToEnd/test_clients_known_users.py"),
    ("the-document-lists-each-method-once", '"name": "ping",', '"name": "initialize",',
     "Tests/EndToEnd/test_openrpc.py", "Protocol/openrpc.json"),
    ("python-names-are-lowered-as-ascii", "translate(_LOWER", "lower(", "Tests/EndToEnd/test_clients_names.py"),
    ("python-unknown-options", "if unknown:", "if False:", "Tests/EndToEnd/test_clients_types.py"),
    ("node-fetch-url-secrets", "url.username || url.password", "false", "Tests/EndToEnd/test_clients_fetch.py"),
    ("python-ids-are-integers", "type(found) is int", "isinstance(found, (int, float))", "Tests/EndToEnd/test_clients_names.py"),
    ("perl-ids-are-numbers", '$json->encode([$message->{id}]) eq "[$id]"', "($message->{id} // '') eq $id",
     "Tests/EndToEnd/test_clients_names.py"),
    ("go-schemes-are-ascii", "lower", "strings.ToLower", "Tests/EndToEnd/test_clients_names.py"),
    ("agent-opens-plain-addresses", " or not _ALLOWED.fullmatch(url)", "", "Tests/EndToEnd/test_shown_logins.py"),
    ("agent-opens-loopback-or-https", "is_here or is_elsewhere", "parts.scheme in ('http', 'https')", "Tests/EndToEnd/test_shown_logins.py"),
    ("agent-code-address-of-the-same-site", "is_same_site", "other", "Tests/EndToEnd/test_shown_logins.py"),
    ("typed-control-characters", "text.isTypedText", "text.count >= 0", "Tests/EndToEnd/test_helper_logins.py"),
    ("enter-does-not-end-a-browser-login", "login != nil", "!token.isEmpty", "Tests/EndToEnd/test_shown_logins.py"),
    ("agent-withdrawals-have-a-number", "type(request_id) is int and ", "", "Tests/EndToEnd/test_agent.py"),
    ("agent-known-names-are-exact", " == user", ".lower() == user.lower()", "Tests/EndToEnd/test_agent_known_users.py"),
    ("agent-typed-pins", "any(one in text for one in _SECRET_ATTRIBUTES)", "False", "Tests/EndToEnd/test_agent.py"),
    ("agent-recent-files", "if not files or not all(text.startswith(\"/\") for text in filter(None, files)):", "if not files:",
     "Tests/EndToEnd/test_agent_certificates.py"),
    ("agent-token-time-limit", STATEMENT, "pass", "Tests/EndToEnd/test_agent_manager.py"),
    ("agent-signals-the-broker-only", "not _is_broker(pid)", "pid is None", "Tests/EndToEnd/test_agent_manager.py"),
    ("agent-configuration-changes-one-option", "tomllib.loads(result) == wanted", "True", "Tests/EndToEnd/test_agent_manager.py"),
    ("agent-configuration-changed-meanwhile", "read(real) != before", "False", "Tests/EndToEnd/test_agent_manager.py"),
    ("agent-zenity-mnemonic", "__", "_", "Tests/EndToEnd/test_agent_texts.py"),
    ("agent-pinentry-line", "1000", "1010", "Tests/EndToEnd/test_agent_texts.py"),
    ("agent-saved-host", " title_lines=0, ", " title_lines=2, ", "Tests/EndToEnd/test_agent_looks.py"),
    ("agent-hyphens", STATEMENT, "", "Tests/EndToEnd/test_agent_looks.py"),
]

PLANTED_FILES = [
    ("part-link", "O_NOFOLLOW | ", "", "Tests/EndToEnd/test_helper_planted.py"),
    ("part-owner", " {", " && owner == 0 {", "watchwordTests.FoundFileTests"),
    ("part-hard-link", " =", " >", "watchwordTests.FoundFileTests"),
    ("planted-link", "geteuid()", "facts.st_uid", "Tests/EndToEnd/test_helper_planted.py"),
    ("planted-link-for-errors", "try ResponseOutput.target(of: stderr)", "stderr", "Tests/EndToEnd/test_helper_planted.py"),
    ("planted-file-for-errors", "try ReplacedFile(file)", "file", "Tests/EndToEnd/test_helper_planted.py"),
    ("planted-pipe-for-errors", "? try SpecialFile.open(stderr)", "&& file.isEmpty ? -1",
     "Tests/EndToEnd/test_helper_planted.py"),
    ("planted-pipe", "geteuid()", "file.owner", "watchwordTests.FoundFileTests"),
    ("weakness-of-the-offer-in-question", STATEMENT, "", "watchwordTests.WeaknessNoteTests"),
    ("import-percent-encoding", "false", "index > 0", "watchwordTests.CredentialFileTests"),
    ("import-of-a-default", "word.keyword == .default", 'false, machine: "h"', "watchwordTests.CredentialFileTests"),
    ("planted-file-without-sticky-bit", "0o002 != 0 || folder.st_mode & ", "", "Tests/EndToEnd/test_helper_planted.py"),
    ("planted-file", " owner != folder", " owner == folder", "Tests/EndToEnd/test_helper_planted.py"),
]

ARGUMENTS = [
    ("argument-text", " isHidden", " !isHidden", "watchwordTests.SecretArgumentsTests"),
    ("argument-literal", "literal", "data", "watchwordTests.SecretArgumentsTests"),
    ("argument-query", STATEMENT, "", "watchwordTests.SecretArgumentsTests"),
    ("argument-joined", STATEMENT, "", "watchwordTests.SecretArgumentsTests"),
    ("argument-bytes", "String(validating: bytes, as: UTF8.self) != nil", "!bytes.isEmpty",
     "watchwordTests.SecretArgumentsTests"),
]

CURL = [
    ("curl-refused", "verdict", 'verdict, option.long == "netrc"', "watchwordTests.CurlArgumentsTests"),
    ("curl-secret-abbreviation", "!first.takesValue", "first.takesValue || true", "watchwordTests.CurlArgumentsTests"),
    ("curl-verbose-secrets", "isSecret(field.name) ? redacted(field) : ", "", "watchwordTests.VerboseTests"),
    ("curl-cause", "52", "56", "Tests/EndToEnd/test_curl_alike.py"),
    ("curl-value-of-an-option", STATEMENT, "", "Tests/EndToEnd/test_curl_alike.py"),
    ("curl-url-dash", 'hasPrefix("-")', "isEmpty", "watchwordTests.CurlArgumentsTests"),
    ("curl-user-for-one-server", ")", ") || hasUser", "watchwordTests.CurlArgumentsTests"),
    ("argument-referer", " isURL", " !isURL || isURL", "watchwordTests.SecretArgumentsTests"),
    ("curl-verbose-tokens", " ?", " && false ?", "watchwordTests.VerboseTests"),
]

INSTALLATION = [
    ("install-list-paths", "os.path.normpath(path) != path or ", "", "Tests/EndToEnd/test_install_trust.py"),
    ("install-list-roots", " any", " True or any", "Tests/EndToEnd/test_install_trust.py"),
    ("install-list-owner", STATEMENT, "", "Tests/EndToEnd/test_install_trust.py"),
    ("install-list-names", " or facts.st_nlink != 1", "", "Tests/EndToEnd/test_install_trust.py"),
    ("install-folder-link", " or self.user == 0 and is_inside", "", "Tests/EndToEnd/test_install_trust.py"),
    ("install-folder-owner", STATEMENT, "pass", "Tests/EndToEnd/test_install_trust.py"),
    ("install-set-aside", "not _is_there(name + ending, folder)", "name", "Tests/EndToEnd/test_install_trust.py"),
    ("install-mode", "0o644", "0o666", "Tests/EndToEnd/test_install_trust.py"),
    ("install-prefix", 'unicodedata.category(character)[0] in "CZ', 'character == "\\0', "Tests/EndToEnd/test_install_trust.py"),
    ("install-binaries", "== 0 and facts.st_mode & stat.S_IWOTH", "< 0", "Tests/EndToEnd/test_install_trust.py"),
]

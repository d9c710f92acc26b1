"""The programs that people see and start: the helper, the agent, the installer."""

from .paths import AGENT, HELPER, INSTALLER, PROTOCOL

DISPLAY = [
    ("display-host-end", PROTOCOL + "Values/DisplayURL.swift",
     "isCut ? scalars.suffix(hostLimit) : scalars[...]", "isCut ? scalars.prefix(hostLimit) : scalars[...]",
     "WatchwordProtocolTests.DisplayURLTests"),
    ("display-host-whole", PROTOCOL + "Values/DisplayURL.swift",
     "hostLimit = 259", "hostLimit = 80", "WatchwordProtocolTests.DisplayURLTests"),
    ("display-text-end", PROTOCOL + "Values/DisplayText.swift",
     "unicodeScalars.dropFirst(count - end))", "unicodeScalars.dropFirst(count))", "WatchwordProtocolTests.DisplayTextTests"),
    ("agent-host-whole", AGENT + "escaping.py", "pieces[-HOST_LIMIT:]", "pieces[:HOST_LIMIT]",
     "Tests/EndToEnd/test_agent_texts.py"),
    ("agent-sends-the-id-it-was-given", AGENT + "answers.py", '"id": known.identifier', '"id": known.user', "Tests/EndToEnd/test_agent.py"),
    ("shell-known-names-are-exact", "contrib/clients/shell/watchword.sh", "== $name)", "== $name or true)",
     "Tests/EndToEnd/test_clients_known_users.py"),
    ("go-names-the-stored-login", "contrib/clients/go/messages.go", 'Type: "stored", ID: known.ID', 'Type: "stored", ID: known.User',
     "Tests/EndToEnd/test_clients_known_users.py"),
    ("agent-known-names-are-exact", AGENT + "fallbacks/conversation.py", "if one.name == user)", "if one.name.lower() == user.lower())",
     "Tests/EndToEnd/test_agent.py"),
    ("agent-zenity-mnemonic", AGENT + "fallbacks/zenity.py", '.replace("_", "__")', '.replace("_", "_")',
     "Tests/EndToEnd/test_agent_texts.py"),
    ("agent-pinentry-line", AGENT + "fallbacks/pinentry.py", "_LINE_BYTES, _RESERVED_BYTES = 1000, 260",
     "_LINE_BYTES, _RESERVED_BYTES = 1010, 260", "Tests/EndToEnd/test_agent_texts.py"),
    ("agent-saved-host", AGENT + "windows/saved.py", "subtitle=subtitle, title_lines=0", "subtitle=subtitle, title_lines=2", "Tests/EndToEnd/test_agent_looks.py"),
    ("agent-hyphens", AGENT + "windows/parts.py", "    made.set_attributes(_no_hyphens())\n", "",
     "Tests/EndToEnd/test_agent_looks.py"),
]

PLANTED_FILES = [
    ("part-link", HELPER + "Transfer/FoundFile.swift", "flags | O_NOFOLLOW | O_NONBLOCK", "flags | O_NONBLOCK",
     "Tests/EndToEnd/test_helper_planted.py"),
    ("part-owner", HELPER + "Transfer/FoundFile.swift", "if owner != user {", "if owner != user && owner == 0 {",
     "watchwordTests.FoundFileTests"),
    ("part-hard-link", HELPER + "Transfer/FoundFile.swift", "return links == 1 ?", "return links >= 1 ?",
     "watchwordTests.FoundFileTests"),
    ("planted-link", HELPER + "Transfer/ResponseOutput.swift", "FoundFile(facts).isTrusted(by: geteuid())",
     "FoundFile(facts).isTrusted(by: facts.st_uid)", "Tests/EndToEnd/test_helper_planted.py"),
    ("planted-pipe", HELPER + "Transfer/SpecialFile.swift", "!file.isTrusted(by: geteuid())", "!file.isTrusted(by: file.owner)",
     "watchwordTests.FoundFileTests"),
    ("planted-file-without-sticky-bit", HELPER + "Transfer/ReplacedFile.swift", "folder.st_mode & 0o002 != 0 || folder", "folder",
     "Tests/EndToEnd/test_helper_planted.py"),
    ("planted-file", HELPER + "Transfer/ReplacedFile.swift", "owner != geteuid() && owner != folder.st_uid",
     "owner != geteuid() && owner == folder.st_uid", "Tests/EndToEnd/test_helper_planted.py"),
]

ARGUMENTS = [
    ("argument-text", HELPER + "HiddenText.swift", "if isHidden, !(", "if !isHidden, !(", "watchwordTests.SecretArgumentsTests"),
    ("argument-literal", HELPER + "HiddenText.swift", '"--data-raw": literal', '"--data-raw": data',
     "watchwordTests.SecretArgumentsTests"),
    ("argument-query", HELPER + "SecretArguments.swift", "            HiddenText.hideQuery(of: bytes)\n", "",
     "watchwordTests.SecretArgumentsTests"),
    ("argument-joined", HELPER + "SecretArguments.swift", "        if let texts = HiddenText.joined(bytes) { return texts }\n", "",
     "watchwordTests.SecretArgumentsTests"),
    ("argument-bytes", HELPER + "HiddenText.swift", "if String(validating: bytes, as: UTF8.self) != nil {", "if !bytes.isEmpty {",
     "watchwordTests.SecretArgumentsTests"),
]

INSTALLATION = [
    ("install-list-paths", INSTALLER + "installation.py", "if os.path.normpath(path) != path or ", "if ",
     "Tests/EndToEnd/test_install_trust.py"),
    ("install-list-roots", INSTALLER + "installation.py", "return any(path.startswith(root) or", "return True or any(path.startswith(root) or",
     "Tests/EndToEnd/test_install_trust.py"),
    ("install-list-owner", INSTALLER + "tree.py", "            self._check_owner(facts, self.full(path))\n", "",
     "Tests/EndToEnd/test_install_trust.py"),
    ("install-list-names", INSTALLER + "tree.py", " or facts.st_nlink != 1", "", "Tests/EndToEnd/test_install_trust.py"),
    ("install-folder-link", INSTALLER + "tree.py", " or self.user == 0 and is_inside:", ":", "Tests/EndToEnd/test_install_trust.py"),
    ("install-folder-owner", INSTALLER + "tree.py", "            self._check_owner(facts, path)\n        elif", "            pass\n        elif",
     "Tests/EndToEnd/test_install_trust.py"),
    ("install-set-aside", INSTALLER + "tree.py", "if not _is_there(name + ending, folder)", "if name",
     "Tests/EndToEnd/test_install_trust.py"),
    ("install-mode", INSTALLER + "installation.py", '"surrogateescape"), 0o644)', '"surrogateescape"), 0o666)',
     "Tests/EndToEnd/test_install_trust.py"),
    ("install-prefix", INSTALLER + "layout.py", 'unicodedata.category(character)[0] in "CZ"', 'character == "\\0"',
     "Tests/EndToEnd/test_install_trust.py"),
    ("install-binaries", INSTALLER + "building.py", "os.geteuid() == 0 and facts.st_mode & stat.S_IWOTH", "os.geteuid() < 0",
     "Tests/EndToEnd/test_install_trust.py"),
]

"""What the broker takes from a netrc file, and for whom."""

from .paths import CORE, FETCH

MACHINE = FETCH + "FetchMachine+Netrc.swift"
FILE = "Sources/watchwordd/NetrcFile.swift"
PARSER, PARSING = "Sources/WatchwordProtocol/Netrc.swift", "WatchwordProtocolTests.NetrcTests"
UNIT, WIRE = "WatchwordCoreTests.NetrcFetchTests", "Tests/EndToEnd/test_netrc.py"

NETRC = [
    ("netrc-over-http", FETCH + "CredentialSearch+Netrc.swift", "            !chain.isReadable(.server(origin)), [", "            [", UNIT),
    ("netrc-schemes", FETCH + "CredentialSearch+Netrc.swift", ", [.httpBasic, .httpDigest].contains(asked.authenticationMethod)\n", "\n", UNIT),
    ("netrc-weak-challenge", FETCH + "CredentialSearch+Netrc.swift", "asked.digest?.protection != .legacy && !space.lacksRealm\n            && ", "", UNIT),
    ("netrc-downgrade", FETCH + "CredentialSearch+Netrc.swift", "!isDowngrade(asked, Challenger(space), context, .server)", "true", UNIT),
    ("netrc-undecided-keyring", FETCH + "CredentialSearch+Netrc.swift", "isForWeaker || mayAnswer(asked, space, context),\n            !isUndecidedInKeyring(asked, space, context)\n",
     "isForWeaker || mayAnswer(asked, space, context)\n", UNIT),
    ("netrc-user", FETCH + "CredentialSearch+Netrc.swift", ".first { user?.admits($0.account) ?? true }", ".first { _ in user != nil || user == nil }", UNIT),
    ("netrc-port", CORE + "Ports/NetrcPort.swift", "return place.port.map { $0 == origin.port } ?? isAtDefaultPort",
     "return place.port.map { $0 == origin.port } ?? true", UNIT),
    ("netrc-refused-once", FETCH + "LoginResolution+Memory.swift", "if [.keyring, .netrc].contains(attempt.source) {",
     "if attempt.source == .keyring {", UNIT),
    ("netrc-while-locked", FETCH + "FetchSituation.swift", "case .session, .keyring, .ambient, .netrc: mayUseStorage(for: space, context)\n        case .explicit, .url, .client, .agent: true",
     "case .session, .keyring, .ambient: mayUseStorage(for: space, context)\n        case .explicit, .url, .client, .agent, .netrc: true", UNIT),
    ("netrc-mode", FILE, "if status.st_mode & 0o077 != 0 {", "if status.st_mode & 0o077 == 0o100 {", WIRE),
    ("netrc-link", FILE, "O_NONBLOCK | O_NOFOLLOW", "O_NONBLOCK", WIRE),
    ("netrc-pipe", FILE, "if status.st_mode & S_IFMT != S_IFREG {", "if status.st_mode & S_IFMT == S_IFLNK {", WIRE),
    ("netrc-checked-at-reload", "Sources/watchwordd/RunningService.swift",
     "            netrc.check(settings.netrcFile)\n            broker", "            broker", WIRE),
    ("netrc-logged-once", FILE, "            return state.problem != problem\n", "            return !problem.isEmpty\n", WIRE),
    ("netrc-swallowed-keyword", PARSER, "if word.keyword != nil {", "if word.keyword != nil, word.line < before.line {", PARSING),
    ("netrc-comment-in-line", PARSER, "guard word.beginsWithHash else { return word }", "guard word.beginsWithHash && isAtLineStart else { return word }",
     PARSING),
    ("netrc-fault", PARSER, "if let fault = entry.fault { return skipped.append(fault) }", "_ = entry.fault", PARSING),
    ("netrc-refused-in-any-realm", FETCH + "CredentialSearch+Netrc.swift", "!situation[challenger].hasRefusedNetrc(first),", "!situation[challenger].hasRefused(first, in: space),", UNIT),
    ("netrc-refused-to-others", FETCH + "CredentialSearch+Netrc.swift", "hasRefused(first, at: challenger, now", "hasRefused(first, in: space, now", UNIT),
    ("netrc-behind-one-that-was-there", "Sources/WatchwordCore/Keyring/KeyringRecord.swift",
     "failure.kind == .absent && !wasUsable", "failure.kind == .absent", UNIT),
    ("netrc-without-a-keyring", FETCH + "CredentialSearch+Netrc.swift", "(context.keyring.isAbsent || situation", "(situation", UNIT),
    ("netrc-behind-a-failed-keyring", FETCH + "CredentialSearch+Netrc.swift", "            context.keyring.state == .disabled || isKeyringKnown(at: .server(origin), context),\n", "", UNIT),
    ("netrc-behind-a-locked-item", FETCH + "TargetRecord.swift", "result?.allSatisfy { !$0.isLocked } ?? false", "result != nil", UNIT),
    ("netrc-changed", CORE + "Session/ForgetLog.swift", "        netrcMark = mark\n", "", UNIT),
    ("netrc-changed-by-reload", "Sources/Broker/Desks/SessionKeeper.swift", "if options.netrcFile != before.netrcFile {", "if options.netrcFile == nil, before.netrcFile == \"\" {",
     WIRE),
]

"""Guards of connections, the keyring, and messages from clients."""

from .statement import BODY, STATEMENT

CONNECTIONS = [
    ("forgotten-decisions-close-connections", STATEMENT, "", "WatchwordCoreTests.InventoryTests"),
    ("inventory-of-others", ".filter { sharing.lets(client, manage: $0.owner, isForAll: $0.isPermanent) }", "",
     "WatchwordCoreTests.InventoryTests"),
    ("inventory-without-pin", "-", "-source", "WatchwordCoreTests.InventoryTests"),
    ("trust-fingerprint", "== leaf", "!= nil", "WatchwordCoreTests.ServerTrustFetchTests"),
    ("trust-owner", "&& ($0.isPermanent || $0.owner == owner) ", "",
     "WatchwordCoreTests.(TrustAndCertificateCacheTests|ServerTrustFetchTests)"),
    ("trust-for-all-programs", BODY, "true", "WatchwordCoreTests.ServerTrustFetchTests"),
    ("trust-origin", " == origin", ".host == origin.host", "WatchwordCoreTests.(TrustAndCertificateCacheTests|ServerTrustFetchTests)"),
    ("certificate-origin", "origin == origin && $0.", "",
     "WatchwordCoreTests.(TrustAndCertificateCacheTests|ClientCertificateFetchTests)"),
    ("certificate-owner", "&& $0.owner == owner ", "",
     "WatchwordCoreTests.(TrustAndCertificateCacheTests|ClientCertificateFetchTests)"),
    ("identity-handshake", "handshake == right.handshake && left.", "",
     "WatchwordCoreTests.(HandshakeFetchTests|TrustAndCertificateCacheTests)"),
    ("identity-credential", STATEMENT, "", "WatchwordCoreTests.(HandshakeFetchTests|TrustAndCertificateCacheTests|ProxyFetchTests)"),
    ("identity-tunnel", STATEMENT, "", "WatchwordCoreTests.ProxyFetchTests"),
    ("identity-trust", STATEMENT, "", "WatchwordCoreTests.(ServerTrustFetchTests|TrustAndCertificateCacheTests)"),
    ("identity-certificate", STATEMENT, "", "WatchwordCoreTests.ClientCertificateFetchTests"),
    ("tls-host-name", STATEMENT, "", "TransfersTests.ServerTrustTests"),
    ("tls-pinned-key", " && CertificateFacts.keyFingerprint(of: leaf) == fingerprint", "", "TransfersTests.ServerTrustTests"),
    ("libcurl-follows", "false", "true", "TransfersTests.(ResponseTests|RequestBytesTests|TransferEngineTests)"),
    ("certificate-content-expected", STATEMENT, "_ = Self.changed", "TransfersTests.ClientKeyTests"),
    ("cookies-of-a-proxy", ", !response.isFromProxy", "", "Tests/EndToEnd/test_requests.py"),
    ("key-file-mode", " !", " & 0 !", "TransfersTests.KeyFileExposureTests"),
    ("key-file-owner", " else", " || mode > 0 else", "TransfersTests.KeyFileExposureTests"),
    ("pin-tries", BODY, "nil", "WatchwordCoreTests.PINTriesTests"),
    ("disk-quota", STATEMENT, "", "TransfersTests.DiskQuotaTests"),
    ("unrequested-switch", BODY, "false", "TransfersTests.ResponseTests"),
]

NTLM = [
    ("ntlm-extended-security", "& Self.extendedSecurity !", ">", "WatchwordCoreTests.NTLMChallengeTests"),
    ("ntlm-challenge-is-looked-at", STATEMENT, "_ = ntlm.receive(line, of: headers)", "TransfersTests.NTLMAttemptOnTheWireTests"),
    ("ntlm-one-answer", "ended(.refused)", "challenged", "WatchwordCoreTests.NTLMAttemptTests"),
]

ADDRESSES = [
    ("address-loopback", "|| $0.isThisMachine && rule.address.isThisMachine ", "", "WatchwordCoreTests.AddressRulesTests"),
    ("address-of-a-name", STATEMENT, "return false", "WatchwordCoreTests.AddressRulesTests"),
    ("address-of-a-proxy", ".route ", ".route, route.endpoint.host.isEmpty ", "Tests/EndToEnd/test_requests.py"),
    ("address-after-resolution", STATEMENT, "return address.pointee.family >= 0 && head.mayConnect()",
     "TransfersTests.ConnectionGateTests"),
    ("input-before-the-request", "!hasStrayInput", "true", "TransfersTests.StrayInputTests"),
    ("input-behind-the-response", STATEMENT, "", "TransfersTests.StrayInputTests"),
    ("address-of-a-connection-from-before", "CURL_PREREQFUNC_ABORT", "CURL_PREREQFUNC_OK", "TransfersTests.ConnectionGateTests"),
]

KEYRING = [
    ("keyring-readable", STATEMENT, "_ = isReadable", "WatchwordCoreTests.KeyringMatchTests"),
    ("keyring-server-is-no-proxy", 'attributes["protocol"].flatMap(KeyringAttributes.proxyType) == type',
     "!KeyringAttributes.protocolName(of: type).isEmpty",
     "WatchwordCoreTests.KeyringMatchTests"),
    ("keyring-port", "(origin.port == origin.scheme.defaultPort)", "true", "WatchwordCoreTests.KeyringMatchTests"),
    ("keyring-host", "server.asciiLowercased == origin.host", "!server.isEmpty", "WatchwordCoreTests.KeyringMatchTests"),
    ("keyring-no-guess", "nil", "first", "WatchwordCoreTests.KeyringMatchTests"),
    ("keyring-path", BODY, "true", "WatchwordCoreTests.KeyringMatchTests"),
    ("keyring-removes-exact-only", "nil", "item",
     "WatchwordCoreTests.(KeyringMatchTests|FetchCredentialTests|StoredByHandTests)"),
]

MESSAGES = [
    ("json-duplicate-members", "JSON_REJECT_DUPLICATES | ", "", "JSONTextTests"),
    ("json-wiping-allocator", STATEMENT, "", "WatchwordProtocolTests.MessageMemoryTests"),
    ("error-controls-no-terminal", "control, .format, .", "", "WatchwordProtocolTests.DisplayTextTests"),
    ("frame-one-length", "found == nil, ", "", "WatchwordProtocolTests.Frame"),
    ("buffer-wipes-what-is-taken", STATEMENT, "", "WatchwordProtocolTests.WipingBufferTests"),
    ("request-id-twice", " else", " || calls.count > 0 else", "WatchwordCoreTests.ConnectionMachineTests"),
    ("reply-once", "settle(number)", "contains(number)", "WatchwordCoreTests.ConnectionMachineTests"),
    ("unknown-members", STATEMENT, "", "WatchwordProtocolTests.CredentialTests"),
]

MEMORY = [
    ("memory-stack", "watchword_wipe(area, sizeof area", '__asm__ volatile("" : : "r"(area) : "memory"',
     "CPlatformTests.StackTests"),
    ("memory-of-a-login-connection", "|| $0.holdsTransientSecret ", "", "WatchwordCoreTests.HandshakeFetchTests"),
    ("secret-wipe", STATEMENT, "", "WatchwordProtocolTests.Secret"),
    ("secret-equality", "|", "", "WatchwordProtocolTests.SecretTests"),
    ("secret-not-dumped", STATEMENT, "", "WatchwordProtocolTests.SecretMemoryTests"),
    ("secret-not-in-children", STATEMENT, "", "WatchwordProtocolTests.SecretMemoryTests"),
    ("secret-locked", "mlock($0, $1) == 0", "_, _ in true", "WatchwordProtocolTests.SecretMemoryTests"),
    ("secret-is-not-printed", BODY, "withUnsafeBytes { String(decoding: $0, as: UTF8.self) }",
     "WatchwordProtocolTests.SecretTests"),
    ("heap-wipe", STATEMENT, "", "Tests/EndToEnd/test_life.py"),
    ("no-core", "if (setrlimit(RLIMIT_CORE, &none) != 0) return errno", "(void)none", "Tests/EndToEnd/test_life.py"),
    ("not-dumpable", STATEMENT, "", "Tests/EndToEnd/test_life.py"),
    ("no-new-privileges", STATEMENT, "", "Tests/EndToEnd/test_life.py"),
]

BROKER = [
    ("audit-shares", "groups[parts[small]].bytes <= budget / (parts.count - small)", "budget < 0", "AuditTrailTests"),
    ("file-symbolic-link", "(followsLinks ? 0 : O_NOFOLLOW)", "(followsLinks ? 0 : 0)", "WatchwordProtocolTests"),
    ("file-hard-link", "status.st_nlink > 1", "status.st_nlink > 100", "WatchwordProtocolTests"),
    ("early-bytes-apart", BODY, ".max", "BrokerSocketTests.BrokerServerTests"),
    ("uid", BODY, "true", "BrokerSocketTests.BrokerServerTests"),
    ("uid-asked", ", policy.admits(peer)", "", "BrokerSocketTests.BrokerServerTests"),
    ("system-calls-of-all-threads", "SECCOMP_FILTER_FLAG_TSYNC", "0", "CPlatformTests"),
    ("socket-mode", "0o600", "0o660", "BrokerSocketTests.ListeningSocketTests"),
    ("socket-ancestors", STATEMENT, "", "BrokerSocketTests.ListeningSocketTests"),
    ("inherited-socket-folder", BODY, "_ = folder", "BrokerSocketTests.ListeningSocketTests"),
    ("client-peer", "== geteuid()", "!= .max - 1", "Tests/EndToEnd/test_impostors.py"),
    ("client-peer-python", "!= os.geteuid()", "< 0", "Tests/EndToEnd/test_impostors.py"),
    ("client-peer-agent", STATEMENT, "pass", "Tests/EndToEnd/test_impostors.py::test_the_agent_sends_nothing"),
    ("client-peer-go", "!= os.Geteuid()", "< 0", "Tests/EndToEnd/test_impostors.py"),
    ("client-peer-rust", "!= own_user()", "== u32::MAX", "Tests/EndToEnd/test_impostors.py"),
    ("client-peer-perl", " || $uid != $>", "", "Tests/EndToEnd/test_impostors.py"),
    ("client-ancestors-node", "directory === '/' ? undefined : dirname(directory)", "undefined",
     "Tests/EndToEnd/test_impostors.py::test_ancestor_directories_are_checked_without_peer_credentials"),
    ("client-owner-shell", "O", "S", "Tests/EndToEnd/test_impostors.py"),
    ("socket-folder", BODY, "nil", "BrokerSocketTests.ListeningSocketTests"),
    ("challenge-deadline", STATEMENT, "", "BrokerTests.BrokerChallengeTests"),
    ("held-by-program", "programs[peer.pid] ?? ", "", "BrokerTests.BrokerQuotaTests"),
    ("greatest-of-all", "largestConsumer ?? connection.program", "largestConsumer.map { _ in connection.program } ?? connection.program",
     "BrokerTests.BrokerQuotaTests"),
    ("connections-of-process", "&& own < limits.connectionsOfProcess ", "", "BrokerSocketTests.BrokerServerTests"),
    ("configuration-file", BODY, "nil", "ConfigurationTests"),
    ("event-of-another", "watch.generation == one.generation, ", "", "EventLoopTests.EventLoopTests"),
]

SERVICE_MANAGER = [
    ("inherited-socket-restricted", "mains.count == 1", "!mains.isEmpty", "BrokerSocketTests.InheritedSocketsTests"),
]

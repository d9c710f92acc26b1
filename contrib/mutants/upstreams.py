"""Guards of the choice of upstream proxies."""

from .statement import STATEMENT

RULE = "WatchwordCoreTests.ProxyRuleTests"
FAILOVER = "WatchwordCoreTests.FailoverTests"
TEXT = "WatchwordCoreTests.UpstreamTextTests"
UPSTREAMS_TEST = "Tests/EndToEnd/test_upstreams.py"
FAULTS = "Tests/EndToEnd/test_upstream_faults.py"
BROKER = "BrokerTests.BrokerUpstreamTests"
FUNCTIONS = "Tests/EndToEnd/test_pac_functions.py"

UPSTREAMS = [
    ("upstream-not-silently-direct", ".failed(failure.text)", "(failure.text.isEmpty ? .unknown : .upstreams([.direct]))", RULE),
    ("upstream-busy-not-replaced", ", !failure.isBusy", "", RULE),
    ("storage-forgeable-proxy", STATEMENT, "", RULE),
    ("upstream-expires", ", now < entry.expiry", "", RULE),
    ("upstream-retry", "now < $0.retry", "now >= .zero && $0.retry > .zero", RULE),
    ("failover-sends-nothing-twice", ", !body.isSpent", "", FAILOVER),
    ("failover-unsafe-method", "!failure.hasSentRequest || isRepeatable, ", "", FAILOVER),
    ("failover-untrusted-proxy", "serverTrust == nil", "serverTrust == nil || true", FAILOVER),
    ("failover-of-others", ", plan.options.connectTimeout == nil", "", FAILOVER),
    ("failover-of-named", ", plan.proxy == .configured", "", FAILOVER),
    ("failover-refusal-not-direct", STATEMENT, "", FAILOVER),
    ("pac-empty-result", "!upstreams.isEmpty", "!result.isEmpty || !upstreams.isEmpty", TEXT),
    ("desktop-not-silently-direct", STATEMENT, "guard let endpoint else { return [.direct] }", TEXT),
    ("upstream-asked-once", "waiting[origin]?.count == 1", "waiting[origin] != nil", UPSTREAMS_TEST),
    ("upstream-busy-not-kept", STATEMENT, "", BROKER),
    ("pac-checked", "port.check(script, completion: completion)", "completion(.success(script))", BROKER),
    ("desktop-script-url", STATEMENT, "", FAULTS),
    ("pac-file-mode", "status.st_mode & 0o022 == 0", "status.st_mode >= 0", UPSTREAMS_TEST),
    ("pac-latin-1", "!= nil", "!= nil || !bytes.isEmpty", TEXT),
    ("pac-construct-named", "construct && (line", "place < 0 && (line", FUNCTIONS),
    ("pac-memory", STATEMENT, "", FUNCTIONS),
    ("pac-resolver-time", "milliseconds_left()", "-1 - 0 * milliseconds_left()", FUNCTIONS),
    ("pac-sandbox", STATEMENT, "(void)filter;", UPSTREAMS_TEST),
]

"""Guards of the choice of upstream proxies."""

from .statement import STATEMENT

RULE = "WatchwordCoreTests.ProxyRuleTests"
FAILOVER = "WatchwordCoreTests.FailoverTests"
TEXT = "WatchwordCoreTests.UpstreamTextTests"
UPSTREAMS_TEST = "Tests/EndToEnd/test_upstreams.py"
FAULTS = "Tests/EndToEnd/test_upstreams.py"
BROKER = "BrokerTests.BrokerUpstreamTests"
FUNCTIONS = "Tests/EndToEnd/test_upstreams.py"

UPSTREAMS = [
    ("upstream-not-silently-direct", ".failed(failure.text)", "(failure.text.isEmpty ? .unknown : .upstreams([.direct]))", RULE),
    ("storage-forgeable-proxy", STATEMENT, "", RULE),
    ("failover-sends-nothing-twice", ", !body.isSpent", "", FAILOVER),
    ("failover-untrusted-proxy", "serverTrust == nil", "serverTrust == nil || true", FAILOVER),
    ("failover-refusal-not-direct", STATEMENT, "", FAILOVER),
    ("pac-sandbox", STATEMENT, "(void)filter;", UPSTREAMS_TEST),
]

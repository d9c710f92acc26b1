"""Guards of the fronts: the requests of programs, and the header fields that pass in both directions."""

from .statement import BODY, STATEMENT

READER = "WatchwordCoreTests.FrontRequestReaderTests"
REFUSED = "WatchwordCoreTests.FrontRefusedRequestTests"
ACCESS = "WatchwordCoreTests.FrontAccessTests"
FIELDS = "WatchwordCoreTests.FrontFieldsTests"
RESPONSE = "WatchwordCoreTests.FrontResponseTests"
ADDRESSES = "WatchwordCoreTests.AddressRulesTests"
SITE = "WatchwordCoreTests.FrontSiteRequestTests"
MAPPING = "WatchwordCoreTests.FrontMappingTests"
ATTACKS = "Tests/EndToEnd/test_front_attacks.py"
HTTP = "Tests/EndToEnd/test_front_http.py"
RESPONSES = "Tests/EndToEnd/test_front_responses.py"

FRONT = [
    ("front-uid", ", peer.uid == uid", "", "Tests/EndToEnd/test_front_attacks.py"),
    ("front-authorization-of-the-program", "fetch.originLogin == .broker,", "", "Tests/EndToEnd/test_front_attacks.py"),
    ("front-on-loopback", '"127.0.0.1:"', '"127.0.0."', "WatchwordProtocolTests.FrontAddressTests"),
    ("front-fold", "!Self.isBlank(first)", "first != 0", REFUSED),
    ("front-field-name", ", nameBytes.allSatisfy(\\.isTokenCharacter)", "", REFUSED),
    ("front-both-lengths", STATEMENT, "", REFUSED),
    ("front-two-lengths", STATEMENT, "", REFUSED),
    ("front-coding", "throw .coding", "return .none", REFUSED),
    ("front-trailer-names", BODY, "true", READER),
    ("front-chunk-size", "else { throw .chunk }", "else { break }", REFUSED),
    ("front-line-feed", ", bytes[lineFeed - 1] == 0x0D", "", REFUSED),
    ("front-refused-once", STATEMENT, "", READER),
    ("front-other-protocol", ".allSatisfy(FrontRequest.isPassedOn)", ".isEmpty == false", FIELDS),
    ("front-407-of-origin", "status != 407", "status != 0", FIELDS),
    ("front-hop-by-hop", "!Self.hopByHop.contains(name)", "!name.isEmpty", FIELDS),
    ("front-fields-for-proxies", '"proxy-"', '"proxy--"', FIELDS),
    ("front-line-break", BODY, "return text", RESPONSE),
    ("front-token", BODY, "true", ACCESS),
    ("front-needs-token", STATEMENT, "", ACCESS),
    ("front-allowed-hosts", STATEMENT, "_ = isAllowed", ACCESS),
    ("front-tunnel-ports", ", port != 25", "", ACCESS),
    ("own-address", BODY, "false", ADDRESSES),
    ("front-own-process", "getpid()", "1", "BrokerSocketTests.FrontServerTests"),
    ("front-foreign-page", "!request.isForeign(to: origin)", "origin == nil || origin != nil", ACCESS),
    ("front-site-name", BODY, "true", ACCESS),
    ("front-site-foreign-page", "!request.isForeign(to: origin)", "origin != nil", ACCESS),
    ("front-sec-fetch-site", '!["none", "same-origin"].contains(ExactText($0).asciiLowercased)', "$0.isEmpty", ACCESS),
    ("front-origin-field", STATEMENT, "let hasForeignOrigin = target == nil && target != nil", ACCESS),
    ("front-cookies-to-the-site", STATEMENT, "", MAPPING),
    ("front-mapped-origin", "parsed.origin == source", "parsed.origin.port == source.port", MAPPING),
    ("front-methods", STATEMENT, "", SITE),
    ("front-path-readings", STATEMENT, 'return withoutQuery != "" || paths.isEmpty', SITE),
    ("front-fields", BODY, "headers", SITE),
    ("front-budget", "left > 0", "left > -2", SITE),
]

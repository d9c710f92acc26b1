"""Guards of the fronts: the requests of programs, and the header fields that pass in both directions."""

from .statement import STATEMENT

READER = "WatchwordCoreTests.FrontRequestReaderTests"
REFUSED = "WatchwordCoreTests.FrontRefusedRequestTests"
ACCESS = "WatchwordCoreTests.FrontAccessTests"
FIELDS = "WatchwordCoreTests.FrontFieldsTests"
RESPONSE = "WatchwordCoreTests.FrontResponseTests"
SITE = "WatchwordCoreTests.FrontSiteRequestTests"
MAPPING = "WatchwordCoreTests.FrontMappingTests"
BUFFER = "WatchwordCoreTests.FrontBufferTests"
ATTACKS = "Tests/EndToEnd/test_front_attacks.py"
HTTP = "Tests/EndToEnd/test_front_http.py"

FRONT = [
    ("front-consent", "front?.subject ?? ", "", "Tests/EndToEnd/test_front_serve.py"),
    ("front-path-in-ascii", STATEMENT, "", SITE),
    ("front-unread-responses", STATEMENT, "", ATTACKS),
    ("front-login-of-a-connection", "== right.program", "== left.program", ATTACKS),
    ("front-uid", ", peer.uid == uid", "", ATTACKS),
    ("front-authorization-of-the-program", "intent.plan.originLogin == .broker, ", "", ATTACKS),
    ("front-authorization-of-a-restricted-program", STATEMENT, "", ATTACKS),
    ("fronts-of-client", STATEMENT, "", ATTACKS),
    ("front-half-closed", STATEMENT, "", HTTP),
    ("front-connections-of-a-program", STATEMENT, "", HTTP),
    ("front-tunnels-and-descriptors", STATEMENT, "", HTTP),
    ("front-unwanted-trailers", STATEMENT, "", FIELDS),
    ("inherited-front-on-loopback", STATEMENT, "", "Tests/EndToEnd/test_front_activation.py"),
    ("front-on-loopback", '"127.0.0.1:"', '"127.0.0."', "WatchwordProtocolTests.FrontAddressTests"),
    ("a-site-refuses-unknown-members", ', only: ["url", "restricted", "consent", "methods", "paths", "budget"]', "",
     "WatchwordProtocolTests.FrontSiteTests"),
    ("front-fold", "!Self.isBlank(first)", "first != 0", REFUSED),
    ("front-field-name", ", nameBytes.allSatisfy(\\.isTokenCharacter)", "", REFUSED),
    ("front-field-value", "allSatisfy(\\.isFieldCharacter)", "allSatisfy({ $0 >= 0 })", REFUSED),
    ("front-both-lengths", STATEMENT, "", REFUSED),
    ("front-two-lengths", STATEMENT, "", REFUSED),
    ("front-length", "$0)", "$0) || $0 == 0x2B", REFUSED),
    ("front-coding-in-1-0", STATEMENT, "", REFUSED),
    ("front-coding", "throw .coding", "return .none", REFUSED),
    ("front-connect-body", STATEMENT, "", REFUSED),
    ("front-two-hosts", STATEMENT, "", REFUSED),
    ("front-no-host", STATEMENT, "", REFUSED),
    ("front-two-authorizations", STATEMENT, "", REFUSED),
    ("front-two-tokens", STATEMENT, "", REFUSED),
    ("front-field-count", STATEMENT, "", REFUSED),
    ("front-head-size", "limits.headBytes - head.byteCount", "limits.headBytes", REFUSED),
    ("front-trailer-count", STATEMENT, "", REFUSED),
    ("front-trailer-size", "limits.headBytes - trailers.byteCount", "limits.headBytes << 1", REFUSED),
    ("front-trailer-names", "!dropped.contains(name)", '!dropped.contains("")', READER),
    ("front-chunk-size", "else { throw .chunk }", "else { break }", REFUSED),
    ("front-chunk-overflow", ", number.count <= Self.digits", "", REFUSED),
    ("front-chunk-end", STATEMENT, "", REFUSED),
    ("front-chunk-extensions", STATEMENT, "", REFUSED),
    ("front-chunk-extension-characters", "allSatisfy(\\.isFieldCharacter)", "allSatisfy({ $0 >= 0 })", REFUSED),
    ("front-line-feed", ", bytes[lineFeed - 1] == 0x0D", "", REFUSED),
    ("front-empty-lines", STATEMENT, "", READER),
    ("front-refused-once", STATEMENT, "", READER),
    ("front-user", STATEMENT, "", REFUSED),
    ("front-scheme", STATEMENT, "", REFUSED),
    ("front-connect-port", "!port.isEmpty, ", "", REFUSED),
    ("front-h2c", '!$0.asciiLowercased.hasPrefix("h2")', "!$0.isEmpty", READER),
    ("front-loop", "!hasPassed(request.headers)", 'pseudonym != ""', FIELDS),
    ("front-407-of-origin", "status != 407", "status != 0", FIELDS),
    ("front-hop-by-hop", "!Self.hopByHop.contains(name)", "!name.isEmpty", FIELDS),
    ("front-named-by-connection", "!named.contains(name)", '!named.contains("")', FIELDS),
    ("front-fields-for-proxies", '"proxy-"', '"proxy--"', FIELDS),
    ("front-no-body", STATEMENT, "_ = hasBody", RESPONSE),
    ("front-line-break", "$0.isFieldCharacter ? $0 : 0x20", "$0", RESPONSE),
    ("front-response-name", " && field.name.isToken", "", RESPONSE),
    ("front-buffer-wipes-consumed", STATEMENT, "", BUFFER),
    ("front-buffer-wipes-moved", STATEMENT, "", BUFFER),
    ("front-token", "password == token", "!password.isEmpty", ACCESS),
    ("front-needs-token", STATEMENT, "", ACCESS),
    ("front-allowed-hosts", STATEMENT, "_ = isAllowed", ACCESS),
    ("front-tunnel-ports", ", port != 25", "", ACCESS),
    ("front-origin-form", "throw .notForProxy", '("h", 80, nil)', ACCESS),
    ("front-own-address", "isOwn ?", "isOwn && port == 0 ?", ACCESS),
    ("front-foreign-page", "!request.isForeign(to: origin)", "origin == nil || origin != nil", ACCESS),
    ("front-site-name", "$0.asciiLowercased == host", "host.hasPrefix($0.asciiLowercased)", ACCESS),
    ("front-site-foreign-page", "!request.isForeign(to: origin)", "origin != nil", ACCESS),
    ("front-sec-fetch-site", '!["none", "same-origin"].contains(ExactText($0).asciiLowercased)', "$0.isEmpty", ACCESS),
    ("front-origin-field", STATEMENT, "let hasForeignOrigin = target == nil && target != nil", ACCESS),
    ("front-mapped-origin", "parsed.origin == source", "parsed.origin.port == source.port", MAPPING),
    ("front-methods", STATEMENT, "", SITE),
    ("front-hidden-slash", ", Self.isUnambiguous(withoutQuery)", "", SITE),
    ("front-dot-segments", "URLComponentText.removingDotSegments(String(withoutQuery))", "String(withoutQuery)", SITE),
    ("front-budget", "left > 0", "left > -2", SITE),
]

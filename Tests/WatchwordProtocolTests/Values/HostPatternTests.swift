import Testing
import WatchwordProtocol

@Suite struct HostPatternTests {
    @Test(arguments: [
        ("example.com", "example.com", 443), ("example.com", "EXAMPLE.com", 80), ("Example.COM", "example.com", 80),
        ("example.com", "example.com.", 80), ("example.com.", "example.com", 80),
        ("example.com:8080", "example.com", 8080), ("localhost", "localhost", 1), ("a_b-c", "a_b-c", 65_535),
        ("*.example.com", "a.example.com", 80), ("*.example.com", "b.a.example.com.", 80),
        ("*.example.com:80", "a.example.com", 80), (".example.com", "example.com", 80),
        (".example.com", "a.example.com", 80), (".EXAMPLE.com:81", "b.A.example.com", 81), (".com", "example.com", 80),
        ("192.0.2.1", "192.0.2.1", 80), ("192.0.2.1:80", "192.0.2.1", 80), ("192.0.2.1", "[::ffff:192.0.2.1]", 80),
        ("[::ffff:c000:201]", "192.0.2.1", 80), ("[::1]", "[0:0:0:0:0:0:0:1]", 80),
        ("[2001:DB8::1]:8", "[2001:db8::1]", 8),
    ])
    func matches(pattern: String, host: ExactText, port: Int) throws {
        #expect(try HostPattern(pattern).matches(host: host, port: port))
    }

    @Test(arguments: [
        ("example.com", "a.example.com", 80), ("example.com", "example.org", 80), ("example.com", "badexample.com", 80),
        ("example.com:8080", "example.com", 80), ("*.example.com", "example.com", 80),
        ("*.example.com", "badexample.com", 80), ("*.example.com:80", "a.example.com", 81),
        (".example.com", "badexample.com", 80), (".example.com", "example.com.org", 80),
        (".example.com:80", "example.com", 8),
        ("192.0.2.1", "192.0.2.10", 80), ("192.0.2.1", "192.0.2.1.example", 80), ("[::1]", "[::2]", 80),
        ("example.com", "", 80), ("example.com", "example.com..", 80), ("example.com", "example.com\u{0}", 80),
    ])
    func doesNotMatch(pattern: String, host: ExactText, port: Int) throws {
        #expect(try !HostPattern(pattern).matches(host: host, port: port))
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.1.2.3/8", "10.9.9.9", true),
        ("192.168.1.0/25", "192.168.1.127", true), ("192.168.1.0/25", "192.168.1.128", false),
        ("192.0.2.1/32", "192.0.2.1", true), ("192.0.2.1/32", "192.0.2.2", false), ("0.0.0.0/0", "192.0.2.1", true),
        ("0.0.0.0/0", "[::1]", false), ("10.0.0.0/8", "[::ffff:10.1.2.3]", true), ("10.0.0.0/8", "10.example", false),
        ("fd00::/8", "[fd12::1]", true), ("[fd00::]/8", "[fd12::1]", true), ("fd00::/8", "[fe80::1]", false),
        ("2001:db8::/33", "[2001:db8:7fff::1]", true), ("2001:db8::/33", "[2001:db8:8000::1]", false),
        ("::1/128", "[::1]", true), ("::/0", "10.0.0.1", false),
    ])
    func networks(pattern: String, host: ExactText, isIn: Bool) throws {
        #expect(try HostPattern(pattern, allowsNetworks: true).matches(host: host, port: 80) == isIn)
    }

    @Test(arguments: [
        "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "/8", "a.example/8", "::1/129",
        "10.0.0/8",
        "10.0.0.0/8:80", "10.0.0.0:80/8", "http://10.0.0.0/8", "10.0.0.0/255.0.0.0",
    ])
    func whatIsNoNetwork(pattern: String) {
        #expect(throws: Refusal.self) { try HostPattern(pattern, allowsNetworks: true) }
    }

    @Test(arguments: [
        ("", "it is empty"), ("*", "a star is allowed only"), ("*.", "it is not a valid host"),
        (".", "it is not a valid host"), ("*.*.com", "a star is allowed only"),
        ("a.*.com", "a star is allowed only"), ("*example.com", "a star is allowed only"),
        ("..example.com", "it is not a valid host"), ("a..b", "it is not a valid host"),
        ("a b", "it is not a valid host"), ("a\u{0}", "it is not a valid host"),
        ("exämple.com", "use the ASCII form"), ("http://example.com", "omit http:// or https://"),
        ("example.com/", "paths and ranges"), ("10.0.0.0/8", "paths and ranges"),
        ("example.com:", "invalid port"),
        ("example.com:0", "invalid port"), ("example.com:65536", "invalid port"),
        ("example.com:http", "invalid port"), ("example.com:+80", "invalid port"),
        ("::1", "put an IPv6 address"),
        ("[::1", "missing \"]\""), ("[::1]80", "only a colon and a port"),
        ("[zz]", "it is not a valid host"),
        ("[fe80::1%eth0]", "it is not a valid host"), ("[]", "it is not a valid host"),
        ("127.1", "it is not a valid host"), ("127.0.0.01", "it is not a valid host"),
        ("0x7f.0.0.1", "it is not a valid host"), ("2130706433", "it is not a valid host"),
        ("*.192.0.2.1", "IP addresses have no subdomains"), (".[::1]", "put an IPv6 address"),
        (":80", "it is not a valid host"),
    ])
    func refuses(text: String, reason: String) {
        #expect {
            try HostPattern(text)
        } throws: { error in
            guard let invalid = error as? Refusal else { return false }
            return invalid.text.contains(" is not a host pattern: \(reason)")
                && invalid.text.contains("write example.com,")
        }
    }

    @Test(arguments: ["alice:secret@example.com", "http://alice:secret@example.com/", "secret@\u{301}"])
    func doesNotRepeatAPassword(text: String) {
        #expect {
            try HostPattern(text)
        } throws: { error in
            (error as? Refusal)?.text.contains("secret") == false
        }
    }

    @Test func limitsTheLengths() throws {
        let label = String(repeating: "a", count: 63)
        #expect(throws: Never.self) { try HostPattern("\(label).example") }
        #expect(throws: Refusal.self) { try HostPattern("\(label)a.example") }
        let name = Array(repeating: label, count: 4).joined(separator: ".")
        #expect(throws: Refusal.self) { try HostPattern(name) }
        #expect(throws: Never.self) { try HostPattern(String(name.dropLast(2))) }
    }

    @Test(arguments: [
        ("Example.COM.", "example.com"), ("*.A.b:080", "*.a.b:80"), (".A.b", ".a.b"),
        ("[2001:DB8:0::1]:1", "[2001:db8::1]:1"),
    ])
    func hasOneForm(text: String, canonical: String) throws {
        #expect(try HostPattern(text).description == canonical)
        #expect(try HostPattern(text) == HostPattern(canonical))
    }
}

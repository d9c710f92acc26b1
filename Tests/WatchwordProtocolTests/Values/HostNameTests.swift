import Testing

@testable import WatchwordProtocol

@Suite struct HostNameTests {
    @Test(arguments: [
        ("Example.COM.", "example.com"), ("a", "a"), ("127.0.0.1", "127.0.0.1"), ("[::1]", "[::1]"),
        ("[::FFFF:10.0.0.1]", "10.0.0.1"), ("a_b-c.d1", "a_b-c.d1"),
    ])
    func oneSpellingOfEachHost(text: String, name: String) { #expect(HostName.canonical(text) == name) }

    /// A mark joins the character before it, or a prepended sign the one after it.
    @Test(arguments: [
        "", ".", "a..b", ".a", "a..", "[::1", "::1]", "[]", "127.1", "0x7f.1", "1.2.3.04", "a b", "ä.example",
        "[\u{301}::1]", "[::1\u{600}]", "a\u{600}.", "a.\u{301}",
    ])
    func otherTextsAreNoHosts(text: String) { #expect(HostName.canonical(text) == nil) }

    @Test func labelsAndNamesHaveTheLengthsOfDNS() {
        let label = String(repeating: "a", count: 63)
        #expect(HostName.canonical("\(label).\(label)") != nil)
        #expect(HostName.canonical("\(label)a.b") == nil)
        #expect(HostName.canonical(Array(repeating: label, count: 4).joined(separator: ".")) == nil)
    }
}

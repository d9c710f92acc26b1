import Testing

@testable import WatchwordProtocol

struct DisplayURLTests {
    /// 253 characters, the maximum length of a host name.
    private static let long =
        "www.mybank.example-login." + ["a", "b", "c"].map { String(repeating: $0, count: 63) + "." }.joined()
        + String(repeating: "d", count: 23) + ".evil.example"
    private static let path = "/" + String(repeating: "x", count: 200) + "?last"

    @Test("Rule X3: the host is shown whole, the path is shortened")
    func theHostIsWholeAndThePathIsNot() {
        let shown = DisplayURL.text("https://\(Self.long):8443\(Self.path)")
        #expect(shown.hasPrefix("https://\(Self.long):8443/xxx"))
        #expect(shown.hasSuffix("x?last") && shown.contains("x…x"))
        #expect(shown.unicodeScalars.count == "https://\(Self.long):8443".count + DisplayURL.pathLimit + 1)
        #expect(DisplayURL.site(scheme: "https", host: Self.long, port: 443) == "https://\(Self.long)")
        #expect(DisplayURL.origin("http://\(Self.long)/\(Self.path)") == "http://\(Self.long)")
    }

    @Test func anOverlongHostKeepsItsEnd() {
        let host = String(repeating: "mybank.example.", count: 400) + "evil.example"
        for shown in [DisplayURL.host(host), DisplayURL.text("https://\(host)/"), DisplayURL.origin("https://\(host)")]
        {
            #expect(shown.contains(".evil.example") && shown.unicodeScalars.count < 300)
        }
    }

    @Test(arguments: [
        ("https://mybank.example@evil.example/x", "https://evil.example/x"),
        ("https://mybank.example:p@w@evil.example", "https://evil.example"),
        ("http://evil.example\\@mybank.example/", "http://evil.example\\@mybank.example/"),
        ("http://[::1]:8080/a?b#c", "http://[::1]:8080/a?b#c"),
        ("http://a\u{202E}b\u{200B}/\u{1B}[2J", "http://a\u{FFFD}b\u{FFFD}/\u{FFFD}[2J"), ("no URL", "no URL"),
    ])
    func userInformationIsOmittedAndControlCharactersAreReplaced(url: String, shown: String) {
        #expect(DisplayURL.text(url) == shown)
    }

    @Test func portsAreShownWhereTheyAreNotUsual() {
        #expect(DisplayURL.site(scheme: "http", host: "h.example", port: 80) == "http://h.example")
        #expect(DisplayURL.site(scheme: "http", host: "h.example", port: 443) == "http://h.example:443")
        #expect(
            DisplayURL.site(scheme: "http", host: "h.example", port: 80, alwaysWithPort: true) == "http://h.example:80")
    }

    @Test("Rule X3: the end of a long host is repeated")
    func aLongHostHasItsEndShownAgain() {
        let filling = String(repeating: "a", count: 50)
        #expect(DisplayURL.end(ofHost: "short.example") == nil)
        #expect(DisplayURL.end(ofHost: "\(filling).www.evil.example") == "www.evil.example")
        #expect(DisplayURL.end(ofHost: "www.mybank.example.\(filling).evil.example") == "evil.example")
        #expect(DisplayURL.end(ofHost: filling + filling) == filling + filling)
    }
}

import Testing
import WatchwordProtocol

@testable import Configuration

/// The list `[[proxy.rule]]`, and the options of PAC files.
@Suite struct ProxyRuleTests {
    @Test func readsRulesInOrder() throws {
        let read = settings(
            """
            [proxy]
            url = "http://p.example:3128"

            [[proxy.rule]]
            hosts = ["intranet.example", ".corp.example:8443"]
            use = ["HTTP://A.example:3128", "socks5://b.example:1080", "direct"]

            [[proxy.rule]]
            hosts = ["*.example"]
            use = ["direct"]
            """)
        let found = try #require(read)
        #expect(found.proxyURL == "http://p.example:3128")
        #expect(
            found.proxyRules.map { $0.hosts.map { "\($0)" } } == [
                ["intranet.example", ".corp.example:8443"], ["*.example"],
            ])
        #expect(
            found.proxyRules.map(\.use) == [
                ["http://a.example:3128", "socks5h://b.example:1080", "direct"], ["direct"],
            ])
    }

    @Test func allProblemsOfATableAreFoundAtOnce() {
        let texts = problems("[[proxy.rule]]\nhost = [\"h\"]\nuse = \"direct\"").map(\.text)
        #expect(texts.count == 3, "\(texts)")
        #expect(texts.contains { $0.contains("did you mean hosts?") })
        #expect(texts.contains { $0.contains("hosts is missing") } && !texts.contains { $0.contains("use is missing") })
    }

    @Test(arguments: [
        ("[[proxy.rule]]\nuse = [\"direct\"]", 1, "hosts is missing"),
        ("[[proxy.rule]]\nhosts = [\"h\"]", 1, "use is missing"),
        ("[[proxy.rule]]\nhosts = [\"h\"]\nuse = []", 1, "use is missing or empty"),
        ("[[proxy.rule]]\nhosts = [\"h\"]\nuse = [\"p:1\"]", 3, "not a proxy URL"),
        ("[[proxy.rule]]\nhosts = [\"h\"]\nuse = [\"http://u:secret@p:1\"]", 3, "user name or a password"),
        ("[[proxy.rule]]\nhosts = [\"h/x\"]\nuse = [\"direct\"]", 2, "not a host pattern"),
        (
            "[[proxy.rule]]\nhosts = \"h\"\nuse = [\"direct\"]", 2,
            "expected a list of host patterns, found a string; for example, write: hosts = [\"www.example.com\", "
        ),
        ("[[proxy.rule]]\nhosts = [\"h\"]\nuse = [\"direct\"]\nelse = 1", 4, "unknown option"),
        ("[proxy]\nrule = 1", 2, "expected a list of tables"),
        ("[proxy]\npac = \"ftp://h/p\"", 2, "expected a URL"),
        ("[proxy]\npac = \"file://p\"", 2, "expected a URL"),
        ("[proxy]\npac = \"http://u:secret@h/p\"", 2, "without user and password"),
    ])
    func refusesWrongRules(text: String, line: Int, problem: String) {
        let found = problems(text)
        #expect(found.first?.line == line && found.first?.text.contains(problem) == true, "\(found)")
        #expect(!found.contains { $0.text.contains("secret") })
    }

    @Test func aPACFileExcludesTheSettingsOfTheDesktop() {
        let found = problems("[proxy]\npac = \"http://h/p\"\ndesktop = true")
        #expect(found.map(\.key) == ["proxy.pac"])
    }
}

import Configuration
import Testing
import WatchwordProtocol

@Suite struct SchemeTests {
    private func problem(_ order: String) -> SettingsProblem? { problems("[schemes]\norder = [\n'\(order)']").first }

    @Test func readsOrdersInTheirOrder() throws {
        let found = try #require(
            settings(
                """
                [schemes]
                order = [
                  "Intranet.Example:8443 negotiate digest",  # tickets first
                  ".example.org bearer digest basic ntlm",
                ]
                """))
        #expect(
            found.schemeOrders == [
                SchemeOrder(hosts: try HostPattern("intranet.example:8443"), order: [.negotiate, .httpDigest]),
                SchemeOrder(
                    hosts: try HostPattern(".example.org"), order: [.bearer, .httpDigest, .httpBasic, .ntlm]),
            ])
    }

    @Test(arguments: [
        ("", "This is empty."), ("  ", "This is empty."), ("www.example.com", "Behind the host pattern"),
        ("* digest", "\"*\" is not a host pattern."), ("a@b digest", "This text is not a host pattern."),
        ("digest", "Behind the host pattern"), ("h Digest", "\"Digest\" is not a scheme."),
        ("h digest, basic", "\"digest,\" is not a scheme."), ("h kerberos", "\"kerberos\" is not a scheme."),
        ("h clientCertificate", "\"clientCertificate\" is not a scheme."),
        ("h digest digest", "digest is named twice."),
    ])
    func namesLineAndKeyOfAMistake(order: String, reason: String) throws {
        let found = try #require(problem(order))
        #expect(found.line == 3 && found.key == "schemes.order" && found.text.hasPrefix(reason))
    }

    @Test func eachMistakeIsNamedInItsLine() {
        let found = problems("[schemes]\norder = [\n'a digest',\n'b nothing',\n'A basic', 'c']")
        #expect(found.map(\.line) == [4, 5, 5])
        #expect(found[1].text.hasPrefix("a has an order already"))
    }

    /// Over plain http Basic outranks nothing.
    @Test(arguments: [
        ("h:80 basic digest", false), ("h:80 digest basic ntlm", false), (".h:80 basic bearer", false),
        ("h:80 digest basic", true), ("h:80 basic", true), ("h:443 basic digest", true), ("h basic digest", true),
    ])
    func basicComesLastWherePlainHTTPCanBeSeen(order: String, isTaken: Bool) {
        #expect((settings("schemes.order = ['\(order)']") != nil) == isTaken)
        if !isTaken { #expect(problem(order)?.text.hasSuffix("Name basic last.") == true) }
    }

    @Test(arguments: ["negotiate", "delegate", "ntlm"])
    func everyPatternOfAListIsLookedAt(name: String) {
        let found = problems("[schemes]\n\(name) = [\n'*',\n'.ok.example',\n'http://x']")
        #expect(found.map(\.line) == [3, 5] && found.allSatisfy { $0.key == "schemes.\(name)" })
    }
}

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
        ("", "empty string"), ("  ", "empty string"), ("www.example.com", "no scheme after the host pattern"),
        ("* digest", "\"*\" is not a host pattern"), ("a@b digest", "This text is not a host pattern"),
        ("digest", "no scheme after the host pattern"), ("h Digest", "unknown scheme \"Digest\""),
        ("h digest, basic", "unknown scheme \"digest,\""), ("h kerberos", "unknown scheme \"kerberos\""),
        ("h clientCertificate", "unknown scheme \"clientCertificate\""),
        ("h digest digest", "duplicate scheme digest"),
    ])
    func namesLineAndKeyOfAMistake(order: String, reason: String) throws {
        let found = try #require(problem(order))
        #expect(found.line == 3 && found.key == "schemes.order" && found.text.hasPrefix(reason))
    }

    @Test func eachMistakeIsNamedInItsLine() {
        let found = problems("[schemes]\norder = [\n'a digest',\n'b nothing',\n'A basic', 'c']")
        #expect(found.map(\.line) == [4, 5, 5])
        #expect(found[1].text == "duplicate of an earlier string, \"A basic\"; remove one")
    }

    /// Over plain HTTP, Basic ranks below every other scheme.
    @Test(arguments: [
        ("h:80 basic digest", false), ("h:80 digest basic ntlm", false), (".h:80 basic bearer", false),
        ("h:80 digest basic", true), ("h:80 basic", true), ("h:443 basic digest", true), ("h basic digest", true),
    ])
    func basicComesLastWherePlainHTTPCanBeSeen(order: String, isTaken: Bool) {
        #expect((settings("schemes.order = ['\(order)']") != nil) == isTaken)
        if !isTaken { #expect(problem(order)?.text.hasSuffix("put basic last") == true) }
    }

    @Test(arguments: ["negotiate", "delegate", "ntlm"])
    func everyPatternOfAListIsLookedAt(name: String) {
        let found = problems("[schemes]\n\(name) = [\n'*',\n'.ok.example',\n'http://x']")
        #expect(found.map(\.line) == [3, 5] && found.allSatisfy { $0.key == "schemes.\(name)" })
    }
}

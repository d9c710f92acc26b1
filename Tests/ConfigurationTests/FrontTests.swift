import Testing
import WatchwordProtocol

@testable import Configuration

/// The table `[front]` and the list `[[front.site]]`.
@Suite struct FrontTests {
    @Test func readsProxyAndSites() throws {
        let read = settings(
            """
            [front]
            proxy = "127.0.0.1:3128"
            hosts = ["intranet.example"]
            tunnel-ports = [443, 8443]

            [[front.site]]
            listen = "127.0.0.1:8001"
            url = "https://intranet.example"

            [[front.site]]
            listen = "/run/api.sock"
            url = "https://api.example:8443/"
            restricted = true
            methods = ["GET"]
            paths = ["/api/"]
            fields = ["anthropic-version"]
            budget = 100
            """)
        let found = try #require(read)
        #expect(found.frontProxy == .ipv4(port: 3128) && found.frontTunnelPorts == [443, 8443])
        #expect(found.frontHosts.map { "\($0)" } == ["intranet.example"])
        #expect(found.frontSites.map(\.address) == [.ipv4(port: 8001), .socket(path: "/run/api.sock")])
        let site = try #require(found.frontSites.last?.site)
        #expect(site.isRestricted && site.methods == ["GET"] && site.paths == ["/api/"] && site.budget == 100)
        #expect(site.fields == ["anthropic-version"])
    }

    @Test(arguments: [
        ("[front]\nproxy = \"0.0.0.0:3128\"", 2, "not an address"),
        ("[front]\ntunnel-ports = [0]", 2, "found 0"),
        ("[front]\ntunnel-ports = [443, \"80\"]", 2, "several types"),
        ("[front]\nsite = 1", 2, "expected a list of tables, each with listen and url, found a whole number"),
        ("[[front.site]]\nurl = \"https://h\"", 1, "listen is missing"),
        ("[[front.site]]\nlisten = \"127.0.0.1:1\"", 1, "url is missing"),
        ("[[front.site]]\nlisten = \"127.0.0.1:1\"\nurl = \"https://h/path\"", 3, "without a path"),
        ("[[front.site]]\nlisten = \"127.0.0.1:1\"\nurl = \"ftp://h\"", 3, "expected http"),
        ("[[front.site]]\nlisten = \"127.0.0.1:1\"\nurl = \"https://h\"\nbudget = 0", 4, "expected a whole number"),
        ("[[front.site]]\nlisten = \"127.0.0.1:1\"\nurl = \"https://h\"\nmethod = [\"GET\"]", 4, "unknown option"),
        ("[[front.site]]\nlisten = \"127.0.0.1:1\"\nurl = \"https://h\"\npaths = [\"x\"]", 4, "begin with a slash"),
        ("[[front.site]]\nlisten = \"127.0.0.1:1\"\nurl = \"https://h\"\nfields = [\"x y\"]", 4, "names of fields"),
        (
            "[[front.site]]\nlisten = \"127.0.0.1:1\"\nurl = \"https://h\"\nrestricted = 1", 4,
            "expected true or false, found a whole number"
        ),
    ])
    func namesTheProblem(text: String, line: Int, part: String) {
        let found = problems(text)
        #expect(found.count == 1 && found.first?.line == line, "\(found)")
        #expect(found.first?.text.contains(part) == true, "\(found)")
    }

    @Test func twoFrontsCannotHaveOneAddress() {
        let found = problems(
            "[front]\nproxy = \"127.0.0.1:1\"\n[[front.site]]\nlisten = \"127.0.0.1:1\"\nurl = \"https://h\"")
        #expect(found.count == 1 && found.first?.text.contains("two fronts listen at 127.0.0.1:1") == true)
    }
}

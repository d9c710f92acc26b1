import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The translation of header fields between a site and its front.
@Suite struct FrontMappingTests {
    private let mapping: SiteMapping

    init() throws {
        mapping = try SiteMapping(
            site: FetchURL("https://api.example.com"), front: "127.0.0.1:3901", passesCookies: true)
    }

    private func response(_ name: String, _ value: String) -> String? {
        mapping.response([HeaderField(name, value)]).first?.value
    }

    private func request(_ name: String, _ value: String) -> String? {
        mapping.request([HeaderField(name, value)]).first?.value
    }

    @Test func aRequestNamesTheSite() {
        #expect(request("host", "127.0.0.1:3901") == "api.example.com")
        #expect(request("Origin", "http://127.0.0.1:3901") == "https://api.example.com")
        #expect(request("Referer", "http://127.0.0.1:3901/a?b") == "https://api.example.com/a?b")
        #expect(request("Referer", "http://127.0.0.1:39010/a") == "http://127.0.0.1:39010/a")
        #expect(request("Referer", "http://other/a") == "http://other/a")
        #expect(request("X", "http://127.0.0.1:3901") == "http://127.0.0.1:3901")
    }

    @Test(arguments: [
        ("https://api.example.com/a/../b?c#d", "http://127.0.0.1:3901/a/../b?c#d"),
        ("HTTPS://API.example.com:443?x", "http://127.0.0.1:3901?x"),
        ("//api.example.com/a", "http://127.0.0.1:3901/a"),
        ("/a", "/a"), ("a", "a"), ("http://api.example.com/a", "http://api.example.com/a"),
        ("https://api.example.com.evil/a", "https://api.example.com.evil/a"),
        ("https://u@api.example.com/", "https://u@api.example.com/"), ("//other/a", "//other/a"),
        ("https://api.example.com:444/", "https://api.example.com:444/"),
    ])
    func aLocationLeadsToTheFront(value: String, expected: String) {
        #expect(response("Location", value) == expected)
        #expect(response("content-location", value) == expected)
    }

    @Test(arguments: [
        ("a=b; Path=/; Secure; HttpOnly", "a=b; Path=/; HttpOnly"), ("a=b; domain=api.example.com", "a=b"),
        ("a=b; Domain = .Example.com ;secure", "a=b"), ("secure=Secure", "secure=Secure"), ("a=b; Domain=", "a=b"),
        ("Domain=api.example.com; SameSite=Lax", "Domain=api.example.com; SameSite=Lax"),
        ("a=b; SameSite=None; Secure; Partitioned", "a=b"), ("a=b; SameSite = none", "a=b"),
        ("__Host-a=b; Path=/; Secure", "__Host-a=b; Path=/; Secure"),
        (" __secure-a=b; Secure; SameSite=None", " __secure-a=b; Secure; SameSite=None"),
        ("__Hosta=b; Secure", "__Hosta=b"), ("a=__Host-b; Secure", "a=__Host-b"),
        ("a=b; Max-Age=1; Expires=x", "a=b; Max-Age=1; Expires=x"),
    ])
    func aCookieBelongsToTheFront(value: String, expected: String) {
        #expect(response("Set-Cookie", value) == expected)
    }

    @Test(arguments: [
        "a=b; Domain=other.com", "a=b; Domain=ample.com", "a=b; domain=localhost", "a=b; Domain=x.api.example.com",
    ])
    func aCookieOfAnotherSiteIsDropped(value: String) {
        #expect(response("Set-Cookie", value) == nil)
    }

    @Test func cookiesPassOnlyUnderANameOfTheirOwn() throws {
        let shared = try SiteMapping(
            site: FetchURL("https://api.example.com"), front: "127.0.0.1:3901", passesCookies: false)
        #expect(shared.response([HeaderField("set-cookie", "a=b"), HeaderField("A", "b")]) == [HeaderField("A", "b")])
        #expect(shared.request([HeaderField("cookie", "a=b"), HeaderField("A", "b")]) == [HeaderField("A", "b")])
        #expect(request("Cookie", "a=b") == "a=b")
    }

    @Test func eachSiteHasANameOfItsOwn() throws {
        let urls = [
            "https://a-b.example", "https://a.b-example", "https://a.b.example", "http://a.b.example",
            "https://a.b.example:8443",
            "https://xn--bcher-kva.example", "https://[::1]", "https://127.0.0.1",
            "https://\(String(repeating: "a.", count: 100))example",
            "https://_-_.example",
        ]
        let names = try urls.map { FrontSite.localName(for: try FetchURL($0).origin) }
        #expect(Set(names).count == urls.count)
        for name in names {
            let label = try #require(name.split(separator: ".").first)
            #expect(name == "\(label).localhost" && label.count <= 63 && !label.contains("--") && label.first != "-")
            #expect(throws: Never.self) { try FetchURL("http://\(name):1/") }
        }
        #expect(names[0].hasPrefix("a-b-example-"))
        #expect(names[0] == FrontSite.localName(for: try FetchURL("https://A-B.example:443/").origin))
    }

    @Test func pagesOfTheFrontMayReadTheResponse() {
        #expect(response("Access-Control-Allow-Origin", "https://api.example.com") == "http://127.0.0.1:3901")
        #expect(response("Access-Control-Allow-Origin", "*") == "*")
        #expect(response("Access-Control-Allow-Origin", "null") == "null")
    }

    @Test func refreshIsDropped() {
        #expect(mapping.response([HeaderField("Refresh", "0; url=https://api.example.com/")]).isEmpty)
    }

    @Test func aFrontHasAHost() {
        #expect(throws: FetchFailure.self) {
            try SiteMapping(site: FetchURL("http://h"), front: "a/b", passesCookies: true)
        }
    }
}

import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The translation of header fields between a site and its front.
@Suite struct FrontMappingTests {
    private let mapping: SiteMapping

    init() throws { mapping = try SiteMapping(site: FetchURL("https://api.example.com"), front: "127.0.0.1:3901") }

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
        ("a=b; Domain = .Example.com ;secure", "a=b"), ("a=b; Domain=other.com", "a=b; Domain=other.com"),
        ("a=b; Domain=ample.com", "a=b; Domain=ample.com"), ("secure=Secure", "secure=Secure"), ("a=b; Domain=", "a=b"),
        ("Domain=api.example.com; SameSite=Lax", "Domain=api.example.com; SameSite=Lax"),
    ])
    func aCookieBelongsToTheFront(value: String, expected: String) {
        #expect(response("Set-Cookie", value) == expected)
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
        #expect(throws: FetchFailure.self) { try SiteMapping(site: FetchURL("http://h"), front: "a/b") }
    }
}

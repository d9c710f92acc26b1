import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The methods, paths and number of requests that a front of a site allows.
@Suite struct FrontSiteRequestTests {
    private let site = FrontSite(url: "https://h", methods: ["GET", "POST"], paths: ["/v1/", "/status"])

    @Test(arguments: [
        "/v1/", "/v1/a", "/v1/a/b?c=../..", "/status", "/status?x", "/v1/%C3%A9", "/v1/a%20b",
        "/v1/a;b=c",
        "/v1/a.b", "/v1//a", "/v1/{a}|b", "/v1/%2541",
    ])
    func aListedPathIsAllowed(path: String) {
        #expect(site.allows(method: "GET", path: path))
    }

    @Test(arguments: [
        "/", "/v1", "/v2/", "/v1/..", "/v1/../admin", "/v1/%2e%2e/admin", "/v1/.%2E/admin", "/v1/%2e%2e%2fadmin",
        "/v1/..%2Fadmin", "/v1/..%5cadmin", "/v1/..\\admin", "/v1/a%2f..", "/v1/%252e%252e/admin", "/v1/..%252fadmin",
        "/v1/..;/admin", "/v1/%2e%2e;x/admin", "/v1/%00", "/status/", "/status/x", "/statusx", "/V1/a", "v1/a", "", "*",
        "http://h/v1/", "/v1/a b", "/v1/a\r\nb", "/%761/a", "/x?/v1/", "/v1/./../admin",
        "/secret?\u{301}/../v1/x", "/secret/\u{301}x/../v1/y", "/v1/..;\u{301}/secret",
        // Paths that servers read in several ways, also if all of them are in the list.
        "/v1/./a", "/v1/a/../b", "/a/../v1/b", "/v1/%2e%2e/status", "/v1/%2e/a", "/v1/%252e/a", "/v1/a/..",
        "/v1/..%25%32%66admin",
        "/v1/..%25252fadmin", "/v1/%25252525252fadmin", "/v1/%c0%ae%c0%ae/admin", "/v1/..%c0%afadmin",
        "/v1/%u002e%u002e/admin", "/v1/%25u002e%25u002e/admin", "/v1/100%25", "/v1/%25u2215",
        "/v1/%C2%A0", "/v1/%E2%80%A4%E2%80%A4/admin", "/v1/%E2%80%A5/admin", "/v1/%E2%80%A6", "/v1/..%E2%81%84admin",
        "/v1/..%E2%88%95admin", "/v1/..%E3%80%80/admin", "/v1/%EF%BC%8E%EF%BC%8E/admin", "/v1/a%EF%BC%8F..",
        "/v1/%EF%BC%BC",
        "/v1/%25EF%25BC%258F",
        "/v1/%2", "/v1/%", "/v1/%zz", "/v1/a%0d%0ab", "/v1/..%20/admin", "/v1/.../admin", "/v1/..%3bx/admin",
        "/statu%73",
        "/%25%37%36%31/a", "/v1/%e9", "/v1/a%5c..%5cadmin", "/v1/a%255cb",
    ])
    func anyOtherPathIsNot(path: String) {
        #expect(!site.allows(method: "GET", path: path))
    }

    @Test(arguments: [
        "X-HTTP-Method-Override", "x-http-method", "X_HTTP_Method_Override", "X-Original-URL", "X-Rewrite-URL",
        "X-Forwarded-Host", "Forwarded", "Destination", "Request-Uri", "X-HTTP-Verb", "X-Amz-Target",
        "X-Accel-Redirect",
        "Content-Location", "SOAPAction", "X-Anything", "Content_Type", "X-Api-Key", "Host", "Cookie2",
    ])
    func otherFieldsAreNotPassedOn(name: String) {
        let headers = [HeaderField("accept", "a"), HeaderField(name, "/admin"), HeaderField("X-API-version", "1")]
        var (restricted, methods) = (FrontSite(url: "https://h", isRestricted: true), FrontSite(url: "https://h"))
        methods.methods = ["GET"]
        restricted.fields = ["x-api-Version"]
        #expect(restricted.passedOn(headers).map(\.value) == ["a", "1"])
        #expect(methods.passedOn(headers).map(\.value) == ["a"] && site.passedOn(headers).map(\.value) == ["a"])
        #expect(FrontSite(url: "https://h").passedOn(headers) == headers)
    }

    @Test(arguments: [
        "Accept", "Content-Type", "Content-Encoding", "X-Request-Id", "Range", "If-None-Match", "Cookie", "Origin",
        "Sec-Fetch-Site", "X-Requested-With", "X-CSRF-Token", "sec-websocket-key", "User-Agent", "Via", "traceparent",
        "Max-Forwards",
    ])
    func usualFieldsArePassedOn(name: String) {
        #expect(site.passedOn([HeaderField(name, "x")]) == [HeaderField(name, "x")])
    }

    @Test(arguments: [("GET", true), ("POST", true), ("DELETE", false), ("get", false), ("GETX", false), ("", false)])
    func methodsAreListed(method: String, isAllowed: Bool) {
        #expect(site.allows(method: method, path: "/status") == isAllowed)
    }

    @Test func withoutListsEverythingIsAllowed() {
        let open = FrontSite(url: "https://h")
        #expect(open.allows(method: "PURGE", path: "/a%2fb/../c"))
    }

    @Test func theServerItselfIsATargetUnlessPathsAreListed() throws {
        let (open, origin) = (FrontSite(url: "https://h"), try FetchURL("https://h:1/").origin)
        #expect(open.allows(method: "OPTIONS", path: "*") && !site.allows(method: "OPTIONS", path: "*"))
        let url = try open.url(of: "*", origin)
        #expect(url.origin == origin && url.requestTarget == "*" && url.text == "https://h:1/")
        #expect(try open.url(of: "/*", origin).requestTarget == "/*")
        #expect(throws: FrontRefusal.targetSize) {
            try open.url(of: "/" + String(repeating: "a", count: Limits.urlBytes - 9), origin)
        }
    }

    @Test func aBudgetEnds() throws {
        var budget = FrontBudget(FrontSite(url: "https://h", budget: 2))
        try budget.take()
        try budget.take()
        #expect(budget.remaining == 0)
        #expect(throws: FrontRefusal.self) { try budget.take() }
        #expect { try budget.take() } throws: { ($0 as? FrontRefusal)?.status == 429 }
        var unlimited = FrontBudget(FrontSite(url: "https://h"))
        for _ in 0..<10 { try unlimited.take() }
        #expect(unlimited.remaining == nil)
    }
}

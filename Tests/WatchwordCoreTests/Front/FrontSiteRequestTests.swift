import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The methods, paths and number of requests that a front of a site allows.
@Suite struct FrontSiteRequestTests {
    private let site = FrontSite(url: "https://h", methods: ["GET", "POST"], paths: ["/v1/", "/status"])

    @Test(arguments: [
        "/v1/", "/v1/a", "/v1/a/b?c=../..", "/v1/./a", "/v1/a/../b", "/status", "/status?x", "/a/../v1/b",
        "/v1/%2e%2e/status",
        "/v1/100%25",
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
    ])
    func anyOtherPathIsNot(path: String) {
        #expect(!site.allows(method: "GET", path: path))
    }

    @Test(arguments: [("GET", true), ("POST", true), ("DELETE", false), ("get", false), ("GETX", false), ("", false)])
    func methodsAreListed(method: String, isAllowed: Bool) {
        #expect(site.allows(method: method, path: "/status") == isAllowed)
    }

    @Test func withoutListsEverythingIsAllowed() {
        let open = FrontSite(url: "https://h")
        #expect(open.allows(method: "PURGE", path: "/a%2fb/../c"))
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

import JSONText
import Testing
import WatchwordProtocol

@Suite struct FrontSiteTests {
    private let url: JSON = ["url": "https://h"]

    @Test func membersAreReadAndWritten() throws {
        var site = FrontSite(
            url: "https://h", isRestricted: true, methods: ["GET", "M-SEARCH"], paths: ["/", "/a/b"], budget: 7)
        site.fields = ["X-Api_Version"]
        let json: JSON = [
            "url": "https://h", "restricted": true, "methods": ["GET", "M-SEARCH"], "paths": ["/", "/a/b"], "budget": 7,
            "fields": ["X-Api_Version"],
        ]
        #expect(try FrontSite(json) == site)
        #expect(try FrontSite(site.json) == site)
        #expect(try FrontSite(url) == FrontSite(url: "https://h"))
        #expect(try FrontSite(FrontSite(url: "https://h").json) == FrontSite(url: "https://h"))
    }

    @Test func anEmptyListAllowsNothing() throws {
        #expect(try FrontSite(["url": "https://h", "methods": [], "paths": []]).methods == [])
    }

    private static let invalid: [(name: String, json: JSON)] = [
        ("params.site.url", [:]), ("params.site.url", ["url": 1]),
        ("restricted", ["url": "u", "restricted": "yes"]), ("methods", ["url": "u", "methods": ["get"]]),
        ("methods", ["url": "u", "methods": [""]]), ("methods", ["url": "u", "methods": "GET"]),
        ("paths", ["url": "u", "paths": ["a"]]), ("paths", ["url": "u", "paths": [1]]),
        ("fields", ["url": "u", "fields": ["a:"]]), ("fields", ["url": "u", "fields": [""]]),
        ("fields", ["url": "u", "fields": "x"]), ("budget", ["url": "u", "budget": 0]),
        ("budget", ["url": "u", "budget": 1_000_000_001]),
        ("budgets", ["url": "u", "budgets": 1]),
        ("unknown member \"restrictd\"", ["url": "u", "consent": "ask", "restrictd": true]),
    ]

    @Test func anInvalidMemberIsNamed() {
        for (name, json) in Self.invalid {
            #expect(problem { try FrontSite(json, at: "params.site") }?.contains(name) == true, "\(name)")
        }
    }

    @Test func aListHasALimitedLength() throws {
        let paths = (0..<65).map { JSON.string("/\($0)") }
        #expect(try FrontSite(["url": "u", "paths": .array(Array(paths.prefix(64)))]).paths?.count == 64)
        #expect(throws: InvalidParams.self) { try FrontSite(["url": "u", "paths": .array(paths)]) }
    }

    @Test(arguments: [
        ("/", true), ("/a", true), ("/a/", true), ("/a.b/..c/", true), ("/a;b=1", true), ("", false), ("a", false),
        ("/a/..", false), ("/../a", false), ("/./a", false), ("/a%2fb", false), ("/a?b", false), ("/a#b", false),
        ("/a\\b", false), ("/a b", false), ("/ä", false), ("/a\u{0}", false),
    ])
    func aPathIsPlain(text: String, isPath: Bool) {
        #expect(FrontSite.isPath(text) == isPath)
    }
}

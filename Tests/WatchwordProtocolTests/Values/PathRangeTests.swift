import Testing
import WatchwordProtocol

/// Paths in equivalent forms, and as servers may read them.
@Suite struct PathRangeTests {
    @Test(
        arguments: [
            ("/aaaa", "/%61%61%61%61"), ("/a%2Fb", "/a%2fb"), ("/v1/é", "/v1/%C3%A9"), ("/v1/é", "/%761/%c3%a9"),
        ] as [(ExactText, ExactText)])
    func equivalentFormsAreOnePath(one: ExactText, other: ExactText) {
        #expect(PathRange.path(one, covers: other) && PathRange.path(other, covers: one))
        #expect(PathRange.length(of: one) == PathRange.length(of: other))
    }

    @Test(
        arguments: [
            ("/v1/inner", "/v1/%2569nner/x", true), ("/v1/%2569nner", "/v1/inner/x", true),
            ("/v1//inner", "/v1/inner", true), ("/v1/inner;a", "/v1/inner/x", true), ("/v1%2Finner", "/v1/inner", true),
            ("/v1/é", "/v1/%25C3%25A9/x", true), ("/v1/%2525252561", "/v1/x", true),
            ("/v1/inner", "/v1/x", false), ("/v1/inner", "/v1/innerx", false), ("/v1/inner", "/v1", false),
            ("/v1/%2569nner", "/v1/other", false), ("/inner", "/v1/..%2Finner/x", true),
            ("/inner", "/v1/..;/inner", true), ("/v1/inner", "/v1/..%2Finner/x", false),
            ("/v1", "/v1/..%2Finner/x", true), ("/v1/inner", "/v1/.%2Finner/x", true), ("/v1/é", "/v1/x", false),
        ] as [(ExactText, ExactText, Bool)])
    func bothPathsAreReadInEveryWay(own: ExactText, requested: ExactText, mayCover: Bool) {
        #expect(PathRange.path(own, mayCover: requested) == mayCover)
    }
}

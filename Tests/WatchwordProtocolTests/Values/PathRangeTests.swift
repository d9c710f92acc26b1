import Testing
import WatchwordProtocol

/// Paths in equivalent forms, and as servers may read them.
@Suite struct PathRangeTests {
    @Test(
        arguments: [
            ("/aaaa", "/%61%61%61%61"), ("/a%2Fb", "/a%2fb"),
        ] as [(ExactText, ExactText)])
    func equivalentFormsAreOnePath(one: ExactText, other: ExactText) {
        #expect(PathRange.path(one, covers: other) && PathRange.path(other, covers: one))
        #expect(PathRange.length(of: one) == PathRange.length(of: other))
    }
}

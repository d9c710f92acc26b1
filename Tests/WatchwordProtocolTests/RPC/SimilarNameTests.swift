import Testing
import WatchwordProtocol

struct SimilarNameTests {
    @Test(
        "Neighbours in the wrong order count as one mistake, and a third of the name may be wrong",
        arguments: [
            ("lsit", "list", 1), ("chek", "check", 1), ("fetch", "fetch", 0), ("useStorag", "useStorage", 1),
            ("password", "passphrase", nil), ("a", "abc", nil),
        ] as [(String, String, Int?)])
    func distance(name: String, other: String, distance: Int?) {
        #expect(SimilarName.distance(name, other) == distance)
    }

    @Test func theNearestOfSeveralIsFound() {
        #expect(SimilarName.nearest(to: "pins", among: ["path", "pin", "pings"]) == "pin")
        #expect(SimilarName.nearest(to: "elsewhere", among: ["path", "pin"]) == nil)
    }
}

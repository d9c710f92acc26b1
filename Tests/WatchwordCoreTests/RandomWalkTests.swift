import Glibc
import Testing

@testable import WatchwordCore

@Suite struct RandomWalkTests {
    private static let chosenWalks = getenv("WATCHWORD_WALKS").flatMap { Int(String(cString: $0)) }
    private static let walks = chosenWalks ?? 2
    private static let events = chosenWalks == nil ? 20_000 : 40_000

    /// Every fetch ends once, no question is asked twice, and no credential or connection is used for another fetch. Two seeds
    /// with 20,000 events each, or `WATCHWORD_WALKS` seeds with 40,000.
    @Test(arguments: 0..<walks) func aLongRandomWalkViolatesNoInvariant(seed: Int) {
        var walk = RandomWalk(seed: UInt64(seed))
        walk.run(events: Self.events)
        walk.drain()
        #expect(walk.problem == nil, "seed \(seed), after \(walk.events) events")
        #expect(walk.started > 1000)
        let all = [
            "transfer", "ask the handler", "ask the client", "ask the agents", "consult", "lookUp", "readNetrc",
            "findUpstreams", "wait",
            "notify", "finish", "fail", "store", "remove", "announce", "closeConnections", "storeTrust", "audit",
            "report", "confirm", "storeConsents",
        ]
        #expect(walk.reached == Set(all))
    }
}

import Glibc
import Testing

@testable import WatchwordCore

@Suite struct RandomWalkTests {
    private static let walks = getenv("WATCHWORD_WALKS").flatMap { Int(String(cString: $0)) } ?? 2

    /// Forty thousand events for each seed: every fetch ends once, no question is asked twice, and no credential or connection is
    /// used for another fetch. `WATCHWORD_WALKS` is the number of seeds.
    @Test(arguments: 0..<walks) func aLongRandomWalkViolatesNoInvariant(seed: Int) {
        var walk = RandomWalk(seed: UInt64(seed))
        walk.run(events: 40_000)
        walk.drain()
        #expect(walk.problem == nil, "seed \(seed), after \(walk.events) events")
        #expect(walk.started > 1000)
        let all = [
            "transfer", "ask the handler", "ask the client", "ask the agents", "consult", "lookUp", "readNetrc",
            "findUpstreams", "wait",
            "notify", "finish", "fail", "store", "remove", "announce", "closeConnections", "storeTrust", "audit",
            "report", "confirm", "storeGrants",
        ]
        #expect(walk.reached == Set(all))
    }
}

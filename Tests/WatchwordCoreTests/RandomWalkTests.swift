import Testing

@testable import WatchwordCore

@Suite struct RandomWalkTests {
    /// Four hundred thousand events: no fetch without an end, none that is answered twice, no question twice, no credential and no
    /// connection astray.
    @Test(arguments: 0..<10) func aLongWalkBreaksNoPromise(seed: Int) {
        var walk = RandomWalk(seed: UInt64(seed))
        walk.run(events: 40_000)
        walk.drain()
        #expect(walk.problem == nil, "seed \(seed), after \(walk.events) events")
        #expect(walk.started > 1000)
        let all = [
            "transfer", "ask the handler", "ask the client", "ask the agents", "consult", "lookUp", "readNetrc", "wait",
            "tell", "finish", "fail", "store", "remove", "announce", "closeConnections", "keepTrust", "note", "judge",
            "confirm", "keepGrants",
        ]
        #expect(walk.reached == Set(all))
    }
}

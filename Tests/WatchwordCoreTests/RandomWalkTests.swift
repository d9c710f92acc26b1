import Testing

@testable import WatchwordCore

@Suite struct RandomWalkTests {
    /// A million events: no fetch without an end, none that is answered twice, no question twice, no credential astray.
    @Test(arguments: 0..<10) func aLongWalkBreaksNoPromise(seed: Int) {
        var walk = RandomWalk(seed: UInt64(seed))
        walk.run(events: 100_000)
        walk.drain()
        #expect(walk.problem == nil, "seed \(seed), after \(walk.events) events")
        #expect(walk.started > 1000)
        let all = [
            "transfer", "ask the client", "ask the agents", "consult", "lookUp", "wait", "tell", "finish", "fail",
        ]
        #expect(walk.reached == Set(all))
    }
}

import Testing

@testable import Transfers

@Suite struct RateLimiterTests {
    @Test func thePauseFollowsTheUsage() {
        let start = ContinuousClock.now
        var pace = RateLimiter(bytesPerSecond: 1000, now: start)
        #expect(pace.pause(at: start) == nil)
        pace.record(500, at: start)
        #expect(pace.pause(at: start) == start + .milliseconds(500))
        #expect(pace.pause(at: start + .milliseconds(500)) == nil)
    }

    @Test func unusedCreditDoesNotAccumulate() {
        let start = ContinuousClock.now
        var pace = RateLimiter(bytesPerSecond: 1000, now: start)
        let later = start + .seconds(3600)
        pace.record(1000, at: later)
        #expect(pace.pause(at: later) == later + .milliseconds(750))
    }
}

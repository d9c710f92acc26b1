import Testing

@testable import Transfers

@Suite struct PaceTests {
    @Test func itWaitsForWhatWasUsed() {
        let start = ContinuousClock.now
        var pace = Pace(bytesPerSecond: 1000, now: start)
        #expect(pace.pause(at: start) == nil)
        pace.note(500, at: start)
        #expect(pace.pause(at: start) == start + .milliseconds(500))
        #expect(pace.pause(at: start + .milliseconds(500)) == nil)
    }

    @Test func whatWasNotUsedDoesNotAddUp() {
        let start = ContinuousClock.now
        var pace = Pace(bytesPerSecond: 1000, now: start)
        let later = start + .seconds(3600)
        pace.note(1000, at: later)
        #expect(pace.pause(at: later) == later + .milliseconds(750))
    }
}

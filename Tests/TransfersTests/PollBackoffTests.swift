import Testing

@testable import Transfers

@Suite struct PollBackoffTests {
    @Test func thePauseGrowsUntilTheNextActivity() {
        var quiet = PollBackoff()
        var limits: [Int32] = []
        for _ in 0..<40 {
            limits.append(quiet.limit)
            let wasQuiet = quiet.sleepEnded()
            #expect(wasQuiet)
        }
        #expect(limits.prefix(9) == [10, 20, 40, 80, 160, 320, 640, 1000, 1000])
        #expect(limits.last == 1000)
        quiet.recordEvent()
        let wasQuiet = quiet.sleepEnded()
        #expect(!wasQuiet)
        #expect(quiet.limit == 10)
        let isQuietAgain = quiet.sleepEnded()
        #expect(isQuietAgain)
    }
}

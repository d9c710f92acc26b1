import Testing

@testable import BrokerSocket

@Suite struct AcceptRetryTests {
    private let start = ContinuousClock.now
    private var retry = AcceptRetry(
        .init(firstPause: .milliseconds(100), longestPause: .seconds(1), limit: .seconds(60), quiet: .seconds(2)))

    @Test mutating func pausesDoubleUpToTheLongest() {
        var now = start
        for pause in [100, 200, 400, 800, 1000, 1000] {
            #expect(retry.failed(at: now) == .again(after: .milliseconds(pause)))
            now += .milliseconds(pause)
        }
    }

    @Test mutating func continuingFailuresEndTheRetries() {
        var now = start
        while case .again(let pause) = retry.failed(at: now) {
            #expect(now - start < .seconds(60))
            now += pause
        }
        #expect(now - start >= .seconds(60) && now - start < .seconds(62))
    }

    @Test mutating func anAcceptedConnectionEndsTheStreak() {
        var now = start
        for _ in 0..<200 {
            #expect(retry.failed(at: now) == .again(after: .milliseconds(100)))
            now += .seconds(1)
            retry.succeeded()
        }
    }

    @Test mutating func aFailureLongAfterTheLastTryBeginsAnotherStreak() {
        for second in 0..<100 {
            #expect(retry.failed(at: start + .seconds(second * 3)) == .again(after: .milliseconds(100)))
        }
    }
}

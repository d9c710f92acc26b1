import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The growing delay after cancelled questions (SECURITY-RULES X5).
@Suite struct PromptLimiterTests {
    private func site(_ port: Int = 80, realm: ExactText = "r") -> PromptLimiter.Site {
        PromptLimiter.Site(
            Challenger.server(Origin(scheme: .http, host: "h", port: port)).space(realm: realm, .httpBasic))
    }

    @Test func theDelayGrowsUpToAnEnd() {
        let delays = [10, 20, 40, 80, 160, 320, 600, 600].map { Duration.seconds($0) }
        #expect((1...8).map(PromptLimiter.delay) == delays)
        #expect(PromptLimiter.delay(after: 0) == .zero && PromptLimiter.delay(after: -3) == .zero)
        #expect(PromptLimiter.delay(after: .max) == Limits.longestPromptDelay)
    }

    @Test("Rule X5: each refusal doubles the delay and an answer ends it")
    func eachRefusalDoublesTheWaitAndAnAnswerEndsIt() {
        var limiter = PromptLimiter()
        var now = Duration.zero
        for delay in [10, 20, 40] {
            #expect(limiter.wait(of: "a", at: site(), now: now) == nil)
            limiter.recordRefusal(of: "a", at: site(), now: now)
            #expect(limiter.wait(of: "a", at: site(), now: now) == .seconds(delay))
            now += .seconds(delay)
        }
        limiter.recordAnswer(to: "a", at: site())
        limiter.recordRefusal(of: "a", at: site(), now: now)
        #expect(limiter.wait(of: "a", at: site(), now: now) == .seconds(10))
    }

    @Test func theDelayIsForOneProgramAndOneSiteWithAnyRealm() {
        var limiter = PromptLimiter()
        limiter.recordRefusal(of: "a", at: site(), now: .zero)
        #expect(limiter.wait(of: "a", at: site(realm: "other"), now: .zero) != nil)
        #expect(limiter.wait(of: "b", at: site(), now: .zero) == nil)
        #expect(limiter.wait(of: "a", at: site(81), now: .zero) == nil)
    }

    @Test func theDelayAlsoGrowsAcrossSites() {
        var limiter = PromptLimiter()
        for port in 1...PromptLimiter.freeRefusals { limiter.recordRefusal(of: "a", at: site(port), now: .zero) }
        #expect(limiter.wait(of: "a", at: site(100), now: .zero) == nil)
        limiter.recordRefusal(of: "a", at: site(100), now: .zero)
        #expect(limiter.wait(of: "a", at: site(101), now: .zero) == .seconds(10))
        #expect(limiter.wait(of: "b", at: site(101), now: .zero) == nil)
    }

    @Test func oldRefusalsExpireAndRecordsAreBounded() {
        var limiter = PromptLimiter()
        for _ in 0..<3 { limiter.recordRefusal(of: "a", at: site(), now: .zero) }
        let later = Limits.promptMemory + Limits.longestPromptDelay
        limiter.recordRefusal(of: "a", at: site(), now: later)
        #expect(limiter.wait(of: "a", at: site(), now: later) == .seconds(10))
        for number in 0...Limits.promptRecords { limiter.recordRefusal(of: "p\(number)", at: site(), now: later) }
        #expect(limiter.records.count == Limits.promptRecords)
    }
}

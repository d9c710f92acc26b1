import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Programs whose names are canonically equivalent are different programs (SECURITY-RULES X2 and X5).
@Suite struct LookalikeProgramTests {
    private let one = Subject(.exe, "/opt/caf\u{E9}").text
    private let other = Subject(.exe, "/opt/cafe\u{301}").text
    private let site = PromptLimiter.Site(here.space(realm: "r", .httpBasic))

    @Test("Rules X2 and X5: a refusal of one program does not delay its lookalike")
    func aRefusalOfOneDoesNotDelayTheOther() {
        var limiter = PromptLimiter()
        limiter.recordRefusal(of: one, at: site, now: .zero)
        #expect(limiter.wait(of: one, at: site, now: .zero) != nil)
        #expect(limiter.wait(of: other, at: site, now: .zero) == nil)
        limiter.recordAnswer(to: other, at: site)
        limiter.forget(other)
        #expect(limiter.wait(of: one, at: site, now: .zero) != nil)
    }

    @Test func stoppingOneDoesNotStopTheOther() {
        var rules = PromptRules()
        let challenge = Challenge.about("r")
        rules.cancels.record(challenge, now: .zero)
        #expect(rules.stopped.stop(one, now: .zero) == nil)
        #expect(!rules.stopped.contains(other))
        #expect(rules.resume(other).isEmpty && rules.stopped.contains(one))
        #expect(rules.resume(one) == [one])
        #expect(!rules.cancels.covers(challenge, of: one, now: .zero))
        #expect(rules.cancels.covers(challenge, of: other, now: .zero))
    }

    @Test func revokingTheGrantsOfOneKeepsTheGrantsOfTheOther() {
        var run = TableRun(sharing: .ask)
        for number in [UInt64(1), 2] {
            let file = Subject.File(inode: number, changed: 0)
            let subject = Subject(.exe, number == 1 ? "/opt/caf\u{E9}" : "/opt/cafe\u{301}", file: file)
            run.table.restoreConsents([
                PermanentConsent(subject: subject, space: here.space(realm: "r", .httpBasic), user: nil)
            ])
        }
        #expect(run.table.revokeGrants(number: nil, subject: other).count == 1)
        #expect(run.table.revokeGrants(number: nil, subject: one).count == 1)
    }
}

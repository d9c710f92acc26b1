import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The limits of the session that a challenge states (`sessionLimits`).
@Suite struct SessionTimesTests {
    @Test func aLoginIsLimitedByItsUseAndItsAge() throws {
        var run = try MachineRun(
            session: SessionCache(limits: SessionLimits(idle: .seconds(5), lifetime: .seconds(60))))
        run.start()
        run.challengeBasic()
        #expect(run.challenges[0].sessionLimits == .init(idle: .seconds(5), lifetime: .seconds(60)))
        #expect(run.challenges[0].json["sessionLimits"] == ["idleMs": 5000, "lifetimeMs": 60000])
    }

    @Test func aTrustExceptionIsLimitedByItsAgeOnly() throws {
        var run = TableRun()
        run.table.setSessionLimits(SessionLimits(idle: .seconds(5), lifetime: .seconds(60)))
        let fetch = try run.fetch("https://h/a/", subscription: trustOnly)
        run.fail(fetch, .untrusted(1))
        #expect(run.question(fetch)?.json["sessionLimits"] == ["lifetimeMs": 60000])
    }

    @Test func withoutStorageThereAreNoLimits() throws {
        var run = try MachineRun { $0.useStorage = false }
        run.start()
        run.challengeBasic()
        #expect(run.challenges[0].persistenceAllowed == [Persistence.none])
        #expect(run.challenges[0].sessionLimits == nil && run.challenges[0].json["sessionLimits"] == nil as JSON?)
    }

    @Test func aChangeOfTheLimitsAppliesToTheNextChallenge() throws {
        var run = TableRun()
        let first = try run.fetch()
        run.challenge(first)
        run.table.setSessionLimits(SessionLimits(idle: .seconds(1), lifetime: .seconds(2)))
        let second = try run.fetch("http://other/")
        run.challenge(second)
        #expect(run.question(first)?.sessionLimits?.lifetime == Limits.sessionLifetime)
        #expect(run.question(second)?.sessionLimits == .init(idle: .seconds(1), lifetime: .seconds(2)))
    }
}

import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The programs for which a person has stopped all prompts.
@Suite struct StoppedProgramsTests {
    @Test func stoppedProgramsAreListedUntilTheyAreResumed() {
        var stopped = StoppedPrograms()
        #expect(stopped.stop("exe:/a", now: .seconds(1)) == nil)
        #expect(stopped.stop("exe:/b", now: .seconds(2)) == nil)
        #expect(stopped.stop("exe:/a", now: .seconds(3)) == nil)
        stopped.recordUnasked("exe:/a")
        stopped.recordUnasked("exe:/c")
        #expect(
            stopped.listing(now: .seconds(5)) == [
                StoppedProgram(subject: "exe:/a", since: .seconds(4), unasked: 1),
                StoppedProgram(subject: "exe:/b", since: .seconds(3), unasked: 0),
            ])
        #expect(stopped.resume("exe:/c") == [])
        #expect(stopped.resume("exe:/a") == ["exe:/a"])
        #expect(!stopped.contains("exe:/a") && stopped.contains("exe:/b"))
        #expect(stopped.resume(nil) == ["exe:/b"])
        #expect(stopped.listing(now: .zero).isEmpty)
    }

    @Test func stoppedProgramsAreBoundedAndTheOldestIsDropped() {
        var stopped = StoppedPrograms()
        for number in 1...Limits.stoppedPrograms { #expect(stopped.stop("exe:/\(number)", now: .zero) == nil) }
        #expect(stopped.stop("exe:/more", now: .zero) == "exe:/1")
        #expect(stopped.listing(now: .zero).count == Limits.stoppedPrograms)
    }

    @Test func resumingForgetsTheCancelsOfThatProgramOnly() {
        var rules = PromptRules()
        let challenge = Challenge.about("r")
        rules.cancels.record(challenge, now: .zero)
        _ = rules.stopped.stop("exe:/a", now: .zero)
        _ = rules.stopped.stop("exe:/b", now: .zero)
        #expect(rules.resume("exe:/a") == ["exe:/a"])
        #expect(!rules.cancels.covers(challenge, of: "exe:/a", now: .zero))
        #expect(rules.cancels.covers(challenge, of: "exe:/b", now: .zero))
        // A later cancel counts for both programs again.
        rules.cancels.record(challenge, now: .zero)
        #expect(rules.cancels.covers(challenge, of: "exe:/a", now: .zero))
        #expect(rules.resume(nil) == ["exe:/b"])
        #expect(!rules.cancels.covers(challenge, of: "exe:/b", now: .zero))
        #expect(rules.cancels.covers(challenge, of: "exe:/a", now: .zero))
    }

    @Test func resumingEndsTheDelaysOfThatProgram() {
        var rules = PromptRules()
        let site = PromptLimiter.Site(here.space(realm: "r", .httpBasic))
        rules.challenges.recordRefusal(of: "exe:/a", at: site, now: .zero)
        rules.consents.recordRefusal(of: "exe:/a", at: site, now: .zero)
        rules.challenges.recordRefusal(of: "exe:/b", at: site, now: .zero)
        _ = rules.stopped.stop("exe:/a", now: .zero)
        #expect(rules.resume("exe:/a") == ["exe:/a"])
        #expect(rules.challenges.wait(of: "exe:/a", at: site, now: .zero) == nil)
        #expect(rules.consents.wait(of: "exe:/a", at: site, now: .zero) == nil)
        #expect(rules.challenges.wait(of: "exe:/b", at: site, now: .zero) != nil)
    }
}

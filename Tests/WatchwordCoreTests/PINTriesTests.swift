import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Wrong PINs do not lock a token: SECURITY-RULES X5.
@Suite struct PINTriesTests {
    private typealias Flags = PINTries.Flags

    private func flags(low: Bool = false, final: Bool = false, locked: Bool = false) -> Flags {
        var flags = Flags()
        (flags.isCountLow, flags.isFinalTry, flags.isLocked) = (low, final, locked)
        return flags
    }

    @Test("Rule X5: after too many wrong PINs none is tried")
    func afterTooManyWrongPINsNoneIsTried() {
        var tries = PINTries()
        for _ in 0..<Limits.tokenPINTries {
            #expect(tries.reasonNotToTry(Flags()) == nil)
            tries.recordWrong(Flags())
        }
        for _ in 0..<10 { #expect(tries.reasonNotToTry(Flags()) == .tooMany) }
    }

    @Test func theRightPINResetsTheCount() {
        var tries = PINTries()
        tries.recordWrong(Flags())
        tries.recordRight()
        #expect(tries == PINTries())
    }

    @Test func theCountOfTheTokenTakesPrecedence() {
        var tries = PINTries()
        #expect(tries.reasonNotToTry(flags(low: true, final: true)) == .finalTry)
        #expect(tries.reasonNotToTry(flags(low: true, final: true, locked: true)) == .locked)
    }

    @Test func aWrongPINOfAnotherProgramCounts() {
        var tries = PINTries()
        #expect(tries.reasonNotToTry(flags(low: true)) == nil)
        tries.recordWrong(flags(low: true))
        #expect(tries.reasonNotToTry(flags(low: true)) == .tooMany)
    }

    @Test func aCorrectLoginOfAnotherProgramResetsTheCount() {
        var tries = PINTries()
        for _ in 0..<Limits.tokenPINTries { tries.recordWrong(Flags()) }
        #expect(tries.reasonNotToTry(flags(low: true)) == .tooMany)
        #expect(tries.reasonNotToTry(Flags()) == nil)
        #expect(tries == PINTries())
    }

    @Test func withoutAReportOfTheTokenTheCountStays() {
        var tries = PINTries()
        for _ in 0..<Limits.tokenPINTries { tries.recordWrong(Flags()) }
        #expect(tries.reasonNotToTry(Flags()) == .tooMany)
        #expect(tries.reasonNotToTry(Flags()) == .tooMany)
    }
}

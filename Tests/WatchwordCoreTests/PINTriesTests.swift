import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// A token is not locked by guesses: security rule X5.
@Suite struct PINTriesTests {
    private typealias Flags = PINTries.Flags

    private func flags(low: Bool = false, final: Bool = false, locked: Bool = false) -> Flags {
        var flags = Flags()
        (flags.isCountLow, flags.isFinalTry, flags.isLocked) = (low, final, locked)
        return flags
    }

    @Test func afterTooManyWrongPINsNoneIsTried() {
        var tries = PINTries()
        for _ in 0..<Limits.tokenPINTries {
            #expect(tries.objection(Flags()) == nil)
            tries.noteWrong(Flags())
        }
        for _ in 0..<10 { #expect(tries.objection(Flags()) == .tooMany) }
    }

    @Test func theRightPINStartsAgain() {
        var tries = PINTries()
        tries.noteWrong(Flags())
        tries.noteRight()
        #expect(tries == PINTries())
    }

    @Test func theTokensOwnCountGoesFirst() {
        var tries = PINTries()
        #expect(tries.objection(flags(low: true, final: true)) == .finalTry)
        #expect(tries.objection(flags(low: true, final: true, locked: true)) == .locked)
    }

    @Test func aWrongPINOfAnotherProgramCounts() {
        var tries = PINTries()
        #expect(tries.objection(flags(low: true)) == nil)
        tries.noteWrong(flags(low: true))
        #expect(tries.objection(flags(low: true)) == .tooMany)
    }

    @Test func aLoginOfAnotherProgramStartsAgain() {
        var tries = PINTries()
        for _ in 0..<Limits.tokenPINTries { tries.noteWrong(Flags()) }
        #expect(tries.objection(flags(low: true)) == .tooMany)
        #expect(tries.objection(Flags()) == nil)
        #expect(tries == PINTries())
    }

    @Test func aTokenThatReportsNothingStaysAsItWas() {
        var tries = PINTries()
        for _ in 0..<Limits.tokenPINTries { tries.noteWrong(Flags()) }
        #expect(tries.objection(Flags()) == .tooMany)
        #expect(tries.objection(Flags()) == .tooMany)
    }
}

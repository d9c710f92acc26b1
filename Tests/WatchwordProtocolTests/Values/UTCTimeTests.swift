import Testing
import WatchwordProtocol

@Suite struct UTCTimeTests {
    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_795_281_603_120, "2026-11-21T17:20:03.120Z"), (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ])
    func aTimeHasOneText(milliseconds: Int, text: String) {
        #expect(UTCTime.text(milliseconds) == text)
        if milliseconds >= 0 { #expect(UTCTime.milliseconds(text) == milliseconds) }
    }

    /// Each day of 40 years and around the ends of February in 2100, 2200 and 2300, and each eleventh of 400 years.
    @Test func theDaysOfFourHundredYearsAreReadBack() {
        let days = [0..<14_610, 47_530..<47_550, 84_055..<84_075, 120_580..<120_600].flatMap { Array($0) }
        for day in days + Array(stride(from: 0, to: 146_097, by: 11)) {
            let milliseconds = day * 86_400_000
            guard UTCTime.milliseconds(UTCTime.text(milliseconds)) != milliseconds else { continue }
            Issue.record("day \(day)")
        }
    }

    @Test func omittedPartsOfATimeAreZero() {
        #expect(UTCTime.milliseconds("2026-11-21") == 1_795_219_200_000)
        #expect(UTCTime.milliseconds("2026-11-21T17:20") == 1_795_281_600_000)
        #expect(UTCTime.milliseconds("2026-11-21T17:20:03Z") == 1_795_281_603_000)
    }

    @Test(arguments: [
        "", "today", "2026-02-29", "2026-13-01", "2026-00-10", "2026-11-31", "26-11-21", "2026-11-21T",
        "2026-11-21T24:00",
        "2026-11-21T17:60", "2026-11-21T17:20:60", "2026-11-21T17", "2026-11-21T17:20.5", "2026-11-21 17:20",
        "+026-11-21",
        "1969-12-31", "2026-11-21T17:20:03.1Z",
    ])
    func otherTextsAreNotTimes(text: String) { #expect(UTCTime.milliseconds(text) == nil) }
}

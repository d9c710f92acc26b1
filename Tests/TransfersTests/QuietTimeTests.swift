import Testing

@testable import Transfers

@Suite struct QuietTimeTests {
    @Test func itGrowsUntilSomethingHappens() {
        var quiet = QuietTime()
        var limits: [Int32] = []
        for _ in 0..<40 {
            limits.append(quiet.limit)
            quiet.slept(somethingHappened: false)
        }
        #expect(limits.prefix(9) == [10, 20, 40, 80, 160, 320, 640, 1000, 1000])
        #expect(limits.last == 1000)
        quiet.slept(somethingHappened: true)
        #expect(quiet.limit == 10)
    }
}

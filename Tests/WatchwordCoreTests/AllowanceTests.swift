import Testing

@testable import WatchwordCore

@Suite struct AllowanceTests {
    @Test func whatNobodyHasAnyMoreIsGivenBack() {
        let allowance = Allowance(100)
        var first: Allowance.Share? = Allowance.Share(of: allowance)
        let second = Allowance.Share(of: allowance)
        first?.grow(by: 40)
        second.grow(by: 50)
        #expect(allowance.heldCount == 90 && allowance.hasRoom(for: 10) && !allowance.hasRoom(for: 11))
        first = nil
        #expect(allowance.heldCount == 50)
        #expect(second == Allowance.Share(of: allowance))
    }

    @Test func theLastWhoHasABodyGivesItsShareBack() {
        let allowance = Allowance(100)
        var copies: [TransferResponse] = []
        do {
            var response = TransferResponse(status: 200)
            response.share = Allowance.Share(of: allowance)
            response.share?.grow(by: 60)
            copies = [response, response]
        }
        copies.removeLast()
        #expect(allowance.heldCount == 60)
        copies = []
        #expect(allowance.heldCount == 0)
    }

    @Test func whatOneTakesIsTakenInTheWiderOnesToo() {
        let everybody = Allowance(100, of: .everybody)
        let program = Allowance(60, of: .program, within: everybody)
        var first: Allowance? = Allowance(50, of: .connection, within: program)
        let second = Allowance(50, of: .connection, within: program)
        first?.take(40)
        #expect(program.heldCount == 40 && everybody.heldCount == 40 && second.heldCount == 0)
        #expect(first?.shortage(for: 11)?.holder == .connection)
        #expect(second.shortage(for: 20) == nil)
        #expect(second.shortage(for: 21) == Allowance.Shortage(holder: .program, heldCount: 40, limit: 60))
        #expect(second.leavesHalf(with: 10) == false && second.leavesHalf(with: -10) && everybody.leavesHalf(with: 10))
        everybody.take(50)
        #expect(second.shortage(for: 11) == Allowance.Shortage(holder: .everybody, heldCount: 90, limit: 100))
        second.take(5)
        second.giveBack(5)
        first = nil
        #expect(program.heldCount == 0 && everybody.heldCount == 50, "who is gone holds nothing")
    }
}

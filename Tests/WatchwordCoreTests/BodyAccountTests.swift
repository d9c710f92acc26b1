import Testing

@testable import WatchwordCore

@Suite struct BodyAccountTests {
    @Test func whatNobodyHasAnyMoreIsGivenBack() {
        let account = BodyAccount(limit: 100)
        var first: BodyAccount.Share? = BodyAccount.Share(of: account)
        let second = BodyAccount.Share(of: account)
        first?.grow(by: 40)
        second.grow(by: 50)
        #expect(account.heldBytes == 90 && account.hasRoom(for: 10) && !account.hasRoom(for: 11))
        first = nil
        #expect(account.heldBytes == 50)
        #expect(second == BodyAccount.Share(of: account))
    }

    @Test func theLastWhoHasABodyGivesItsShareBack() {
        let account = BodyAccount(limit: 100)
        var copies: [TransferResponse] = []
        do {
            var response = TransferResponse(status: 200)
            response.share = BodyAccount.Share(of: account)
            response.share?.grow(by: 60)
            copies = [response, response]
        }
        copies.removeLast()
        #expect(account.heldBytes == 60)
        copies = []
        #expect(account.heldBytes == 0)
    }
}

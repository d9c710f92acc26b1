import Testing

@testable import WatchwordCore

@Suite struct QuotaTests {
    @Test func droppedUsageIsReleased() {
        let quota = Quota(100)
        var first: Quota.Share? = Quota.Share(of: quota)
        let second = Quota.Share(of: quota)
        first?.grow(by: 40)
        second.grow(by: 50)
        #expect(quota.usage == 90 && quota.hasRoom(for: 10) && !quota.hasRoom(for: 11))
        first = nil
        #expect(quota.usage == 50)
        #expect(second == second && second != Quota.Share(of: quota))
    }

    @Test func theLastOwnerOfABodyReleasesItsUsage() {
        let quota = Quota(100)
        var copies: [TransferResponse] = []
        do {
            var response = TransferResponse(status: 200)
            response.share = Quota.Share(of: quota)
            response.share?.grow(by: 60)
            copies = [response, response]
        }
        copies.removeLast()
        #expect(quota.usage == 60)
        copies = []
        #expect(quota.usage == 0)
    }

    @Test func usageIsChargedToTheParentQuotas() {
        let allPrograms = Quota(100, of: .allPrograms)
        let program = Quota(60, of: .program, within: allPrograms)
        var first: Quota? = Quota(50, of: .connection, within: program)
        let second = Quota(50, of: .connection, within: program)
        first?.take(40)
        #expect(program.usage == 40 && allPrograms.usage == 40 && second.usage == 0)
        #expect(first?.shortage(for: 11)?.holder == .connection)
        #expect(second.shortage(for: 20) == nil)
        #expect(second.shortage(for: 21) == Quota.QuotaExceeded(holder: .program, usage: 40, limit: 60))
        #expect(
            second.hasHeadroom(with: 10) == false && second.hasHeadroom(with: -10) && allPrograms.hasHeadroom(with: 10))
        allPrograms.take(50)
        #expect(second.shortage(for: 11) == Quota.QuotaExceeded(holder: .allPrograms, usage: 90, limit: 100))
        second.take(5)
        second.release(5)
        first = nil
        #expect(program.usage == 0 && allPrograms.usage == 50, "a connection that has ended has no usage")
    }
}

import Glibc
import TestServers
import Testing
import WatchwordCore

@testable import Transfers

/// Bodies in temporary files use a quota, and a reserve of the disk stays free.
@Suite(.timed) struct DiskQuotaTests {
    private static let chunk = [UInt8](repeating: 1, count: 1000)

    private func append(_ count: Int, to copy: inout BodyCopy) {
        for _ in 0..<count { Self.chunk.withUnsafeBytes { copy.append($0) } }
    }

    @Test("Rule X4: bodies in files use the disk quota")
    func onlyFilesUseTheQuota() {
        let disk = Quota(10_000)
        var copy: BodyCopy? = BodyCopy(memoryBytes: 3000, disk: disk)
        append(3, to: &copy!)
        #expect(disk.usage == 0)
        append(1, to: &copy!)
        #expect(disk.usage == 4000)
        append(6, to: &copy!)
        #expect(disk.usage == 10_000)
        let before = copy?.loss
        #expect(before == nil)
        copy = nil
        #expect(disk.usage == 0)
    }

    @Test func aCopyBeyondTheQuotaIsLostAndItsFileClosed() {
        let program = Quota(10_000, of: .program)
        let (first, second) = (Quota(.max, within: program), Quota(.max, within: program))
        var one = BodyCopy(memoryBytes: 0, disk: first)
        var other = BodyCopy(memoryBytes: 0, disk: second)
        append(6, to: &one)
        append(5, to: &other)
        let isLost = one.isLost
        let loss = other.loss
        #expect(!isLost && loss == .quota(Quota.QuotaExceeded(holder: .program, usage: 10_000, limit: 10_000)))
        #expect(program.usage == 6000 && second.usage == 0)
        var third = BodyCopy(memoryBytes: 0, disk: second)
        append(4, to: &third)
        let remains = third.isLost
        #expect(!remains)
    }

    /// Copies use only half of the memory quota, so that there is room for other data.
    @Test func copiesTakeHalfOfTheMemoryAndThenTheDisk() {
        let (memory, disk) = (Quota(10_000), Quota(10_000))
        var one: BodyCopy? = BodyCopy(memoryBytes: 3000, memory: memory, disk: disk)
        var other = BodyCopy(memoryBytes: 3000, memory: memory, disk: disk)
        append(3, to: &one!)
        append(2, to: &other)
        #expect(memory.usage == 5000 && disk.usage == 0)
        append(1, to: &other)
        #expect(memory.usage == 3000 && disk.usage == 3000)
        one = nil
        let remains = other.isLost
        #expect(memory.usage == 0 && !remains)
    }

    @Test func aLostCopyUsesNoQuota() {
        let (memory, disk) = (Quota(10_000), Quota(3000))
        var copy = BodyCopy(memoryBytes: 3000, memory: memory, disk: disk)
        append(3, to: &copy)
        #expect(memory.usage == 3000)
        append(1, to: &copy)
        let isLost = copy.isLost
        #expect(memory.usage == 0 && disk.usage == 0 && isLost)
    }

    /// No bytes are written for a copy that cannot be completed.
    @Test func aCopyThatWillNotHaveRoomIsNotBegun() {
        let disk = Quota(2000)
        var copy = BodyCopy(memoryBytes: 1000, disk: disk)
        copy.expect(2000)
        let fits = copy.loss == nil
        copy.expect(2001)
        let loss = copy.loss
        #expect(fits && loss == .quota(Quota.QuotaExceeded(holder: .connection, usage: 0, limit: 2000)))
        append(1, to: &copy)
        let count = copy.count
        #expect(count == 0)
    }

    @Test func aReserveOfTheDiskIsLeftFree() {
        let (small, large) = (100 << 20, 1 << 40)
        #expect(DiskReserve.allows(1 << 20, free: 3 << 20, size: small))
        #expect(!DiskReserve.allows((1 << 20) + 1, free: 3 << 20, size: small))
        #expect(DiskReserve.allows(1, free: EngineLimits.diskReserveBytes + 1, size: large))
        #expect(!DiskReserve.allows(2, free: EngineLimits.diskReserveBytes + 1, size: large))
        #expect(!DiskReserve.allows(1, in: "/nonexistent"))
        #expect(!DiskReserve.allows(.max, in: "/"))
    }

    @Test func aRefusalBeyondTheQuotaNamesIt() async throws {
        let body = String(repeating: "x", count: 3 << 20)
        let head = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\n"
        let server = ScriptedServer([.bytes("\(head)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")])
        defer { server.stop() }
        let disk = Quota(2 << 20, of: .program)
        try await withEngine { engine in
            var request = request(server.url)
            request.options.delivery = .beyond(1000)
            request.options.maxBodyBytes = 64 << 20
            let failure = try #require(
                try await engine.exchange(request, ResponseQuotas(disk: disk)).get().bodyFailure)
            #expect(failure.kind == .quotaExceeded)
            #expect(failure.detail.contains("all connections of this program ("))
            #expect(failure.detail.contains("of 2097152 bytes in use"))
        }
        #expect(disk.usage == 0)
    }

    @Test(arguments: [nil, 10] as [Int?])
    func anUploadContinuesWithoutACopy(size: Int?) {
        let disk = Quota(5)
        let source = BodySource(size: size, storesCopy: true, disk: disk, memoryBytes: 0)
        let (mine, client) = socketPair()
        defer { close(client) }
        source.attach(BodySocket(owning: mine))
        var buffer = [UInt8](repeating: 0, count: 5)
        for count in [5, 10] {
            #expect(send(client, "01234", 5, Int32(MSG_NOSIGNAL)) == 5)
            let part = buffer.withUnsafeMutableBytes { source.read(into: $0) }
            #expect(part == .bytes(5))
            #expect(source.state == (size == nil && count == 5 ? .copied : .spent))
        }
        #expect(disk.usage == 0)
    }
}

import Glibc
import TestServers
import Testing
import WatchwordCore

@testable import Transfers

/// Bodies in temporary files use a quota, and leave some of the disk to others.
@Suite(.timed) struct DiskQuotaTests {
    private static let chunk = [UInt8](repeating: 1, count: 1000)

    private func append(_ count: Int, to copy: inout BodyCopy) {
        for _ in 0..<count { Self.chunk.withUnsafeBytes { copy.append($0) } }
    }

    @Test func onlyFilesUseTheQuota() {
        let disk = Allowance(10_000)
        var copy: BodyCopy? = BodyCopy(memoryBytes: 3000, disk: disk)
        append(3, to: &copy!)
        #expect(disk.heldCount == 0)
        append(1, to: &copy!)
        #expect(disk.heldCount == 4000)
        append(6, to: &copy!)
        #expect(disk.heldCount == 10_000)
        let before = copy?.loss
        #expect(before == nil)
        copy = nil
        #expect(disk.heldCount == 0)
    }

    @Test func aCopyBeyondTheQuotaIsLostAndItsFileClosed() {
        let program = Allowance(10_000, of: .program)
        let (first, second) = (Allowance(.max, within: program), Allowance(.max, within: program))
        var one = BodyCopy(memoryBytes: 0, disk: first)
        var other = BodyCopy(memoryBytes: 0, disk: second)
        append(6, to: &one)
        append(5, to: &other)
        let isLost = one.isLost
        let loss = other.loss
        #expect(!isLost && loss == .quota(Allowance.Shortage(holder: .program, heldCount: 10_000, limit: 10_000)))
        #expect(program.heldCount == 6000 && second.heldCount == 0)
        var third = BodyCopy(memoryBytes: 0, disk: second)
        append(4, to: &third)
        let remains = third.isLost
        #expect(!remains)
    }

    /// What others have to hold there is room for: copies give way to them.
    @Test func copiesTakeHalfOfTheMemoryAndThenTheDisk() {
        let (memory, disk) = (Allowance(10_000), Allowance(10_000))
        var one: BodyCopy? = BodyCopy(memoryBytes: 3000, memory: memory, disk: disk)
        var other = BodyCopy(memoryBytes: 3000, memory: memory, disk: disk)
        append(3, to: &one!)
        append(2, to: &other)
        #expect(memory.heldCount == 5000 && disk.heldCount == 0)
        append(1, to: &other)
        #expect(memory.heldCount == 3000 && disk.heldCount == 3000)
        one = nil
        let remains = other.isLost
        #expect(memory.heldCount == 0 && !remains)
    }

    @Test func aCopyThatIsLostHoldsNothing() {
        let (memory, disk) = (Allowance(10_000), Allowance(3000))
        var copy = BodyCopy(memoryBytes: 3000, memory: memory, disk: disk)
        append(3, to: &copy)
        #expect(memory.heldCount == 3000)
        append(1, to: &copy)
        let isLost = copy.isLost
        #expect(memory.heldCount == 0 && disk.heldCount == 0 && isLost)
    }

    /// Nothing is written in vain.
    @Test func aCopyThatWillNotHaveRoomIsNotBegun() {
        let disk = Allowance(2000)
        var copy = BodyCopy(memoryBytes: 1000, disk: disk)
        copy.expect(2000)
        let fits = copy.loss == nil
        copy.expect(2001)
        let loss = copy.loss
        #expect(fits && loss == .quota(Allowance.Shortage(holder: .connection, heldCount: 0, limit: 2000)))
        append(1, to: &copy)
        let count = copy.count
        #expect(count == 0)
    }

    @Test func someOfTheDiskIsLeftFree() {
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
        let disk = Allowance(2 << 20, of: .program)
        try await withEngine { engine in
            var request = request(server.url)
            request.options.delivery = .beyond(1000)
            request.disk = disk
            request.options.maxBodyBytes = 64 << 20
            let failure = try #require(await engine.exchange(request).failure)
            #expect(failure.kind == .quotaExceeded)
            #expect(failure.detail.contains("this program, over all its connections, may keep 2097152 bytes"))
        }
        #expect(disk.heldCount == 0)
    }

    @Test(arguments: [nil, 10] as [Int?])
    func anUploadGoesOnWithoutACopy(size: Int?) {
        let disk = Allowance(5)
        let source = BodySource(size: size, keepsCopy: true, disk: disk, memoryBytes: 0)
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
        #expect(disk.heldCount == 0)
    }
}

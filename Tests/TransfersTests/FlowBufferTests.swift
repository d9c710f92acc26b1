import Testing

@testable import Transfers

@Suite struct FlowBufferTests {
    private func take(_ count: Int, of buffer: inout FlowBuffer, freeingBeyond limit: Int = 1 << 20) {
        buffer.take(count, freeingBeyond: limit, retainsCapacity: true)
    }

    /// The result does not depend on the memory freed in between.
    @Test(arguments: [1, 3, 1000]) func noBytesAreLost(limit: Int) {
        var buffer = FlowBuffer([1, 2, 3])
        let more: [UInt8] = [4, 5, 6]
        more.withUnsafeBytes { buffer.append($0) }
        var received: [UInt8] = []
        for count in [2, 1, 0, 3] {
            received += buffer.next(count)
            take(count, of: &buffer, freeingBeyond: limit)
        }
        #expect(received == [1, 2, 3, 4, 5, 6])
        #expect(buffer.offset == 6)
        #expect(buffer.count == 0)
    }

    @Test func unreadBytesAreLent() {
        var buffer = FlowBuffer([1, 2, 3])
        take(1, of: &buffer)
        #expect(buffer.withUnsafeBytes { Array($0) } == [2, 3])
    }

    @Test func unreadBytesAreDropped() {
        var buffer = FlowBuffer([1, 2, 3])
        take(1, of: &buffer)
        buffer.drop()
        #expect(buffer.count == 0)
        #expect(buffer.offset == 1)
    }
}

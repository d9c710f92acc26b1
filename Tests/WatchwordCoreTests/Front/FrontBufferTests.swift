import Testing

@testable import WatchwordCore

/// The received bytes of a front. They may contain credentials, so nothing remains of those that are consumed.
@Suite struct FrontBufferTests {
    private func filled(_ count: Int, _ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte, count: count) }

    @Test func consumedBytesAreWiped() {
        var buffer = FrontBuffer()
        filled(13, 1).withUnsafeBytes { buffer.append($0) }
        filled(4, 2).withUnsafeBytes { buffer.append($0) }
        let block = buffer.bytes
        buffer.removeFirst(13)
        let rest = Array(buffer.bytes)
        #expect(rest == filled(4, 2))
        #expect(Array(block) == filled(13, 0) + filled(4, 2))
    }

    @Test func movedBytesAreWiped() {
        var buffer = FrontBuffer()
        filled(800, 1).withUnsafeBytes { buffer.append($0) }
        let block = buffer.bytes
        buffer.removeFirst(700)
        filled(300, 2).withUnsafeBytes { buffer.append($0) }
        let (content, start) = (Array(buffer.bytes), buffer.bytes.baseAddress)
        #expect(content == filled(100, 1) + filled(300, 2))
        #expect(start == block.baseAddress, "the content was moved in its block")
        #expect(Array(block[400...]) == filled(400, 0))
    }

    @Test func contentGrowsAndShrinksInOrder() {
        var buffer = FrontBuffer()
        var (expected, isEqual): ([UInt8], Bool) = ([], true)
        for step in 0..<400 {
            let added = (0..<(step * 37 % 301)).map { UInt8(truncatingIfNeeded: $0 &+ step) }
            added.withUnsafeBytes { buffer.append($0) }
            expected += added
            let taken = min(expected.count, step * 53 % 283)
            buffer.removeFirst(taken)
            expected.removeFirst(taken)
            isEqual = isEqual && buffer.bytes.elementsEqual(expected)
        }
        #expect(isEqual)
        buffer.removeFirst(buffer.count)
        let isEmpty = buffer.bytes.isEmpty
        #expect(isEmpty)
    }
}

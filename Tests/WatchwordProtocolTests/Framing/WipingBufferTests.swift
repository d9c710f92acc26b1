import Testing

@testable import WatchwordProtocol

struct WipingBufferTests {
    private func append(_ text: String, to buffer: inout WipingBuffer) {
        Array(text.utf8).withUnsafeBytes { buffer.append($0) }
    }

    private func text(of buffer: borrowing WipingBuffer) -> String { String(decoding: buffer.bytes, as: UTF8.self) }

    @Test func startsEmpty() {
        var buffer = WipingBuffer(retaining: 4096)
        let isEmpty = buffer.isEmpty
        #expect(isEmpty)
        buffer.removeFirst(buffer.count)
        append("", to: &buffer)
        let count = buffer.count
        #expect(count == 0)
        #expect(text(of: buffer).isEmpty)
    }

    @Test func appendedBytesAreReadInOrder() {
        var buffer = WipingBuffer(retaining: 4096)
        append("abc", to: &buffer)
        append("def", to: &buffer)
        #expect(text(of: buffer) == "abcdef")
        buffer.removeFirst(2)
        #expect(text(of: buffer) == "cdef")
        append("g", to: &buffer)
        #expect(text(of: buffer) == "cdefg")
        buffer.removeFirst(5)
        #expect(text(of: buffer).isEmpty)
        append("again", to: &buffer)
        #expect(text(of: buffer) == "again")
    }

    @Test(arguments: [1023, 1024, 1025, 65_536, 65_537, 300_000])
    func growsAndShrinksWithoutLosingBytes(count: Int) {
        var buffer = WipingBuffer(retaining: 4096)
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var start = 0
        while start < count {
            let end = min(count, start + 7919)
            bytes[start..<end].withUnsafeBytes { buffer.append($0) }
            start = end
        }
        let isWhole = buffer.bytes.elementsEqual(bytes)
        #expect(isWhole)
        buffer.removeFirst(count - 10)
        let isRest = buffer.bytes.elementsEqual(bytes.suffix(10))
        #expect(isRest)
        buffer.removeFirst(10)
        let isEmpty = buffer.isEmpty
        #expect(isEmpty)
    }

    @Test("Rule M2: consumed bytes are wiped")
    func wipesConsumedBytes() {
        let search = MemorySearch()
        var buffer = WipingBuffer(retaining: 4096)
        append("before", to: &buffer)
        buffer.append(search.bytes)
        append("after", to: &buffer)
        #expect(search.copies() == 1)
        buffer.removeFirst(6 + search.bytes.count)
        #expect(search.copies() == 0)
        #expect(text(of: buffer) == "after")
    }

    @Test func wipesWhereTheRestWasMovedFrom() {
        let search = MemorySearch()
        var buffer = WipingBuffer(retaining: 4096)
        append(String(repeating: "x", count: 500), to: &buffer)
        buffer.append(search.bytes)
        buffer.removeFirst(500)
        #expect(search.copies() == 1, "moved, not copied")
        buffer.removeFirst(buffer.count)
        #expect(search.copies() == 0)
    }

    @Test func wipesTheStorageThatItOutgrows() {
        let search = MemorySearch()
        var buffer = WipingBuffer(retaining: 4096)
        buffer.append(search.bytes)
        for _ in 0..<8 { append(String(repeating: "x", count: 1000), to: &buffer) }
        #expect(search.copies() == 1)
        buffer.removeFirst(buffer.count)
        #expect(search.copies() == 0)
    }

    @Test func wipesItsContentsWhenFreed() {
        let search = MemorySearch()
        do {
            var buffer = WipingBuffer(retaining: 4096)
            append(String(repeating: "x", count: 30_000), to: &buffer)
            buffer.append(search.bytes)
            #expect(search.copies() == 1)
        }
        #expect(search.copies() == 0)
    }

    private func filled(_ count: Int, _ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte, count: count) }

    @Test func consumedBytesAreWiped() {
        var buffer = WipingBuffer(retaining: 4096)
        filled(13, 1).withUnsafeBytes { buffer.append($0) }
        filled(4, 2).withUnsafeBytes { buffer.append($0) }
        let block = buffer.bytes
        buffer.removeFirst(13)
        let rest = Array(buffer.bytes)
        #expect(rest == filled(4, 2))
        #expect(Array(block) == filled(13, 0) + filled(4, 2))
    }

    @Test func movedBytesAreWiped() {
        var buffer = WipingBuffer(retaining: 4096)
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
        var buffer = WipingBuffer(retaining: 4096)
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

import Testing

@testable import WatchwordProtocol

struct WipingBufferTests {
    private func append(_ text: String, to buffer: inout WipingBuffer) {
        Array(text.utf8).withUnsafeBytes { buffer.append($0) }
    }

    private func text(of buffer: borrowing WipingBuffer) -> String { String(decoding: buffer.bytes, as: UTF8.self) }

    @Test func startsEmpty() {
        var buffer = WipingBuffer()
        let isEmpty = buffer.isEmpty
        #expect(isEmpty)
        buffer.removeFirst(buffer.count)
        append("", to: &buffer)
        let count = buffer.count
        #expect(count == 0)
        #expect(text(of: buffer).isEmpty)
    }

    @Test func appendedBytesAreReadInOrder() {
        var buffer = WipingBuffer()
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
        var buffer = WipingBuffer()
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
        var buffer = WipingBuffer()
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
        var buffer = WipingBuffer()
        append(String(repeating: "x", count: 500), to: &buffer)
        buffer.append(search.bytes)
        buffer.removeFirst(500)
        #expect(search.copies() == 1, "moved, not copied")
        buffer.removeFirst(buffer.count)
        #expect(search.copies() == 0)
    }

    @Test func wipesTheStorageThatItOutgrows() {
        let search = MemorySearch()
        var buffer = WipingBuffer()
        buffer.append(search.bytes)
        for _ in 0..<8 { append(String(repeating: "x", count: 1000), to: &buffer) }
        #expect(search.copies() == 1)
        buffer.removeFirst(buffer.count)
        #expect(search.copies() == 0)
    }

    @Test func wipesItsContentsWhenFreed() {
        let search = MemorySearch()
        do {
            var buffer = WipingBuffer()
            append(String(repeating: "x", count: 30_000), to: &buffer)
            buffer.append(search.bytes)
            #expect(search.copies() == 1)
        }
        #expect(search.copies() == 0)
    }
}

internal import CPlatform
internal import Glibc

/// A growing run of bytes that leaves nothing behind: what is consumed, outgrown or dropped is wiped.
struct WipingBuffer: ~Copyable {
    private var block: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init() { block = UnsafeMutableRawBufferPointer(start: nil, count: 0) }

    deinit { Self.release(block) }

    var isEmpty: Bool { count == 0 }

    /// Lent until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: block[..<count]) }

    mutating func append(_ added: UnsafeRawBufferPointer) {
        guard !added.isEmpty else { return }
        reserve(count + added.count)
        UnsafeMutableRawBufferPointer(rebasing: block[count..<(count + added.count)]).copyMemory(from: added)
        count += added.count
    }

    /// Drops the first `consumed` bytes and wipes where they were.
    mutating func removeFirst(_ consumed: Int) {
        let rest = count - consumed
        if rest > 0 { memmove(block.baseAddress!, block.baseAddress! + consumed, rest) }
        watchword_wipe(block.baseAddress.map { $0 + rest }, consumed)
        count = rest
        if rest == 0 && block.count > Self.keptBytes { shrink() }
    }

    mutating func removeAll() { removeFirst(count) }

    /// An empty buffer keeps no more than this, so that one large message does not cost its size for ever.
    private static let keptBytes = 64 << 10

    private mutating func reserve(_ needed: Int) {
        guard needed > block.count else { return }
        replaceBlock(
            UnsafeMutableRawBufferPointer.allocate(byteCount: max(needed, block.count * 2, 1024), alignment: 1))
    }

    private mutating func shrink() {
        replaceBlock(UnsafeMutableRawBufferPointer(start: nil, count: 0))
    }

    private mutating func replaceBlock(_ larger: UnsafeMutableRawBufferPointer) {
        if count > 0 { larger.copyMemory(from: bytes) }
        Self.release(block)
        block = larger
    }

    private static func release(_ block: UnsafeMutableRawBufferPointer) {
        guard let start = block.baseAddress else { return }
        watchword_wipe(start, block.count)
        block.deallocate()
    }
}

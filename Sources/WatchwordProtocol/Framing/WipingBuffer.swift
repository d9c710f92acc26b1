internal import CPlatform
internal import Glibc

/// A growable byte buffer that wipes bytes when they are consumed, when its block is replaced, and when it is destroyed.
struct WipingBuffer: ~Copyable {
    private var block: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init() { block = UnsafeMutableRawBufferPointer(start: nil, count: 0) }

    deinit { Self.release(block) }

    var isEmpty: Bool { count == 0 }

    /// The content; valid until the next mutation.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: block[..<count]) }

    mutating func append(_ added: UnsafeRawBufferPointer) {
        guard !added.isEmpty else { return }
        reserve(count + added.count)
        UnsafeMutableRawBufferPointer(rebasing: block[count..<(count + added.count)]).copyMemory(from: added)
        count += added.count
    }

    /// Removes the first `consumed` bytes and wipes the space that becomes free.
    mutating func removeFirst(_ consumed: Int) {
        let rest = count - consumed
        if rest > 0 { memmove(block.baseAddress!, block.baseAddress! + consumed, rest) }
        watchword_wipe(block.baseAddress.map { $0 + rest }, consumed)  // guard: buffer-wipes-what-is-taken
        count = rest
        if rest == 0 && block.count > Self.retainedBytes { shrink() }
    }

    /// The capacity that an empty buffer may retain, so that one large message does not occupy memory permanently.
    private static let retainedBytes = 64 << 10

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
        watchword_wipe(start, block.count)  // guard: buffer-wipes-its-end
        block.deallocate()
    }
}

internal import CPlatform
internal import Glibc

/// Received bytes that are not consumed yet. They are wiped when they are consumed or moved, when their block is replaced,
/// and when the buffer is destroyed, because they may contain credentials.
package struct WipingBuffer: ~Copyable, Sendable {
    /// Owned by this value, which is not copied; so only one thread at a time uses the address.
    nonisolated(unsafe) private var block = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var start = 0
    package private(set) var count = 0
    private let retainedBytes: Int

    /// - Parameter retainedBytes: the capacity that the buffer may retain while it is empty.
    package init(retaining retainedBytes: Int) { self.retainedBytes = retainedBytes }

    deinit { Self.release(block) }

    package var isEmpty: Bool { count == 0 }

    /// The content; valid until the next mutation.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: block[start..<start + count]) }

    package mutating func append(_ added: UnsafeRawBufferPointer) {
        guard !added.isEmpty else { return }
        if start + count + added.count > block.count { makeRoom(for: added.count) }
        UnsafeMutableRawBufferPointer(rebasing: block[(start + count)...]).copyMemory(from: added)
        count += added.count
    }

    package mutating func removeFirst(_ consumed: Int) {
        // guard: buffer-wipes-what-is-taken
        Self.wipe(UnsafeMutableRawBufferPointer(rebasing: block[start..<start + consumed]))
        count -= consumed
        start = count == 0 ? 0 : start + consumed
        if count == 0, block.count > retainedBytes { replaceBlock(with: 0) }
    }

    /// Moves the content to the start of the block, or to a larger block if it would fill more than half of this one. So
    /// the number of moved bytes is proportional to the number of appended ones.
    private mutating func makeRoom(for added: Int) {
        let needed = count + added
        if needed > block.count / 2 { return replaceBlock(with: max(count == 0 ? added : needed * 2, 1024)) }
        memmove(block.baseAddress!, block.baseAddress! + start, count)
        Self.wipe(UnsafeMutableRawBufferPointer(rebasing: block[count..<start + count]))
        start = 0
    }

    private mutating func replaceBlock(with size: Int) {
        let other = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 1)
        if count > 0 { other.copyMemory(from: bytes) }
        Self.release(block)
        (block, start) = (other, 0)
    }

    private static func release(_ block: UnsafeMutableRawBufferPointer) {
        wipe(block)
        block.deallocate()
    }

    package static func wipe(_ bytes: UnsafeMutableRawBufferPointer) { watchword_wipe(bytes.baseAddress, bytes.count) }
}

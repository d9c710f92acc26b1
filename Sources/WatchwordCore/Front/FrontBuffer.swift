internal import COpenSSL
internal import Glibc

/// The received bytes that a front has not consumed yet. They are wiped when they are consumed or moved, because they may
/// contain credentials.
struct FrontBuffer: ~Copyable, Sendable {
    /// Owned by this value, which is not copied; so only one thread at a time uses the address.
    nonisolated(unsafe) private var block = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var start = 0
    private(set) var count = 0

    deinit {
        Self.wipe(block)
        block.deallocate()
    }

    /// The content; valid until the next mutation.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: block[start..<start + count]) }

    mutating func append(_ added: UnsafeRawBufferPointer) {
        guard !added.isEmpty else { return }
        if start + count + added.count > block.count { makeRoom(for: added.count) }
        UnsafeMutableRawBufferPointer(rebasing: block[(start + count)...]).copyMemory(from: added)
        count += added.count
    }

    mutating func removeFirst(_ consumed: Int) {
        // guard: front-buffer-wipes-consumed
        Self.wipe(UnsafeMutableRawBufferPointer(rebasing: block[start..<start + consumed]))
        count -= consumed
        start = count == 0 ? 0 : start + consumed
        if count == 0, block.count > Self.retainedBytes { replaceBlock(with: 0) }
    }

    /// The capacity that an empty buffer may retain, so that an idle connection or a tunnel occupies little memory.
    private static let retainedBytes = 4096

    /// Moves the content to the start of the block, or to a larger block if it would fill more than half of this one. So
    /// the number of moved bytes is proportional to the number of appended ones.
    private mutating func makeRoom(for added: Int) {
        let needed = count + added
        if needed > block.count / 2 { return replaceBlock(with: max(count == 0 ? added : needed * 2, 1024)) }
        memmove(block.baseAddress!, block.baseAddress! + start, count)
        // guard: front-buffer-wipes-moved
        Self.wipe(UnsafeMutableRawBufferPointer(rebasing: block[count..<start + count]))
        start = 0
    }

    private mutating func replaceBlock(with size: Int) {
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 1)
        if count > 0 { larger.copyMemory(from: bytes) }
        Self.wipe(block)
        block.deallocate()
        (block, start) = (larger, 0)
    }

    static func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
        if let start = bytes.baseAddress { OPENSSL_cleanse(start, bytes.count) }
    }
}

internal import CPlatform
internal import Glibc
internal import Synchronization

/// A block of memory for one secret: in pages that are never written to swap, left out of dumps and wiped in children
/// (mlock(2), MADV_DONTDUMP and MADV_WIPEONFORK of madvise(2)), between two that nobody may touch. Wiped when it goes.
struct SecretBlock: ~Copyable {
    let bytes: UnsafeMutableRawBufferPointer
    /// Whether the kernel has agreed not to write it to swap: it allows each user only so much (RLIMIT_MEMLOCK).
    let isLocked: Bool

    init(byteCount: Int, in memory: SecretMemory) {
        let slot = memory.take(byteCount)
        bytes = UnsafeMutableRawBufferPointer(start: slot.start, count: slot.size)
        isLocked = slot.isLocked
        self.memory = memory
    }

    private let memory: SecretMemory

    deinit {
        watchword_wipe(bytes.baseAddress, bytes.count)
        memory.giveBack(SecretMemory.Slot(start: bytes.baseAddress, size: bytes.count, isLocked: isLocked))
    }
}

/// Where secrets are: small ones share pages with others of about their size, which are kept for the next; large ones have pages
/// of their own.
final class SecretMemory: Sendable {
    static let shared = SecretMemory(lock: { mlock($0, $1) == 0 })

    /// `nonisolated(unsafe)`: an address, which is used by one block at a time.
    struct Slot: Sendable {
        nonisolated(unsafe) let start: UnsafeMutableRawPointer?
        let size: Int
        let isLocked: Bool
    }

    private static let sizes = [64, 256, 1024, 4096]
    /// As many as give 8 KiB to each size.
    private static let pagesTogether = 2
    private static let pageSize = sysconf(Int32(_SC_PAGESIZE))

    /// By the place of their size in `sizes`.
    private let free = Mutex([[Slot]](repeating: [], count: sizes.count))
    private let lock: @Sendable (UnsafeMutableRawPointer, Int) -> Bool

    /// - Parameter lock: keeps so many bytes from swap; `false` when the kernel does not allow it.
    init(lock: @escaping @Sendable (UnsafeMutableRawPointer, Int) -> Bool) { self.lock = lock }

    func take(_ count: Int) -> Slot {
        guard let place = Self.sizes.firstIndex(where: { $0 >= count }) else {
            let pages = (count + Self.pageSize - 1) / Self.pageSize
            let (start, isLocked) = map(pages)
            return Slot(start: start, size: pages * Self.pageSize, isLocked: isLocked)
        }
        return free.withLock { free in
            if let slot = free[place].popLast() { return relocked(slot) }
            let size = Self.sizes[place]
            let (start, isLocked) = map(Self.pagesTogether)
            let slots = stride(from: 0, to: Self.pagesTogether * Self.pageSize, by: size).map {
                Slot(start: start + $0, size: size, isLocked: isLocked)
            }
            free[place] += slots.dropFirst()
            return slots[0]
        }
    }

    /// Wiped by the caller.
    func giveBack(_ slot: Slot) {
        if let place = Self.sizes.firstIndex(of: slot.size) { return free.withLock { $0[place].append(slot) } }
        munmap(slot.start.map { $0 - Self.pageSize }, slot.size + 2 * Self.pageSize)
    }

    /// What the kernel has refused to lock it may lock now.
    private func relocked(_ slot: Slot) -> Slot {
        guard !slot.isLocked, let start = slot.start else { return slot }
        return Slot(start: start, size: slot.size, isLocked: lock(start, slot.size))
    }

    private func map(_ pages: Int) -> (start: UnsafeMutableRawPointer, isLocked: Bool) {
        let size = pages * Self.pageSize
        let guarded = mmap(nil, size + 2 * Self.pageSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let guarded, guarded != MAP_FAILED else { preconditionFailure("no memory for a secret") }
        let start = guarded + Self.pageSize
        guard mprotect(start, size, PROT_READ | PROT_WRITE) == 0 else { preconditionFailure("no memory for a secret") }
        // Refused only by kernels that are older than these (3.4 and 4.14).
        madvise(start, size, MADV_DONTDUMP)
        madvise(start, size, MADV_WIPEONFORK)
        return (start, lock(start, size))
    }
}

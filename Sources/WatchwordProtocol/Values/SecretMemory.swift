internal import CPlatform
internal import Glibc
internal import Synchronization

/// A memory block for one secret. Its pages are locked against swapping if possible, excluded from core dumps, wiped in child
/// processes (mlock(2), MADV_DONTDUMP and MADV_WIPEONFORK of madvise(2)), and enclosed by inaccessible pages. The block is
/// wiped when it is destroyed.
struct SecretBlock: ~Copyable, Sendable {
    private let slot: SecretMemory.Slot
    private let memory: SecretMemory

    init(byteCount: Int, in memory: SecretMemory) {
        slot = memory.take(byteCount)
        self.memory = memory
    }

    var bytes: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: slot.start, count: slot.size) }

    /// Whether the memory is locked against swapping. The kernel limits locked memory (RLIMIT_MEMLOCK).
    var isLocked: Bool { slot.isLocked }

    deinit {
        watchword_wipe(slot.start, slot.size)  // guard: secret-wipe
        memory.giveBack(slot)
    }
}

/// The allocator for secrets. Small secrets share pages with others of similar size, and their slots are reused; large secrets
/// have their own pages. Thread-safe.
final class SecretMemory: Sendable {
    static let shared = SecretMemory(lock: { mlock($0, $1) == 0 })  // guard: secret-locked

    /// A region of memory. `start` is `nonisolated(unsafe)` because only one block uses the address at a time.
    struct Slot: Sendable {
        nonisolated(unsafe) let start: UnsafeMutableRawPointer?
        let size: Int
        let isLocked: Bool
    }

    private static let sizes = [64, 256, 1024, 4096]
    /// The number of pages mapped at once for a size: 8 KiB with pages of 4 KiB.
    private static let pagesTogether = 2
    private static let pageSize = sysconf(Int32(_SC_PAGESIZE))

    /// The free slots, by the index of their size in `sizes`.
    private let free = Mutex([[Slot]](repeating: [], count: sizes.count))
    private let lock: @Sendable (UnsafeMutableRawPointer, Int) -> Bool

    /// - Parameter lock: Locks a region against swapping; returns `false` if the kernel does not allow it.
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

    /// Frees a slot, which the caller has wiped.
    func giveBack(_ slot: Slot) {
        if let place = Self.sizes.firstIndex(of: slot.size) { return free.withLock { $0[place].append(slot) } }
        munmap(slot.start.map { $0 - Self.pageSize }, slot.size + 2 * Self.pageSize)
    }

    /// Tries again to lock a slot that the kernel refused to lock before.
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
        // Errors are ignored: only kernels without these flags (before 3.4 and 4.14) refuse them.
        madvise(start, size, MADV_DONTDUMP)  // guard: secret-not-dumped
        madvise(start, size, MADV_WIPEONFORK)  // guard: secret-not-in-children
        return (start, lock(start, size))
    }
}

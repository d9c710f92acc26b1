internal import CPlatform
internal import Glibc
internal import Synchronization

/// A queue through which other threads pass work to a loop. Wakes a sleeping loop with one system call. Thread-safe.
final class Mailbox: Sendable {
    enum Work {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    private struct State {
        var work: [Work] = []
        /// Whether the loop sleeps, or is about to, so that `add` must wake it.
        var isAsleep = false
        /// Whether the loop has ended and no work is accepted any more.
        var hasEnded = false
    }

    private let state = Mutex(State())
    /// An eventfd(2), to be watched by the loop.
    let alarm: Int32

    init() throws(LoopFailure) {
        alarm = watchword_event_descriptor()
        guard alarm >= 0 else { throw LoopFailure("eventfd") }
    }

    deinit { close(alarm) }

    /// Adds work. Returns `false`, without adding it, if the loop has ended.
    func add(_ work: Work) -> Bool {
        let (isTaken, wakes) = state.withLock { state in
            guard !state.hasEnded else { return (false, false) }
            state.work.append(work)
            defer { state.isAsleep = false }
            return (true, state.isAsleep)
        }
        // The lock is released first, because the woken thread takes it at once.
        if wakes { ring() }
        return isTaken
    }

    private func ring() {
        var one: UInt64 = 1
        _ = write(alarm, &one, MemoryLayout.size(ofValue: one))
    }

    /// Reads the eventfd, so that it stops being readable.
    func silence() {
        var count: UInt64 = 0
        _ = read(alarm, &count, MemoryLayout.size(ofValue: count))
    }

    /// Marks the loop as asleep and returns `true`, unless work is waiting.
    func fallAsleep() -> Bool {
        state.withLock { state in
            state.isAsleep = state.work.isEmpty
            return state.isAsleep
        }
    }

    /// Removes and returns all work, and marks the loop as awake.
    func take() -> [Work] {
        state.withLock { state in
            state.isAsleep = false
            guard !state.work.isEmpty else { return [] }
            let work = state.work
            state.work = []
            return work
        }
    }

    /// Stops accepting work, and removes and returns the remaining work.
    func end() -> [Work] {
        state.withLock { state in
            state.hasEnded = true
            defer { state.work = [] }
            return state.work
        }
    }
}

/// A list whose elements are taken all at once. Two arrays are used alternately, so that their memory is reused.
struct Batches<Element> {
    private var collected: [Element] = []
    private var spare: [Element] = []

    var isEmpty: Bool { collected.isEmpty }

    mutating func append(_ element: Element) { collected.append(element) }

    mutating func take() -> [Element] {
        defer {
            collected = spare
            spare = []
        }
        return collected
    }

    /// Returns the memory of a processed batch for reuse.
    mutating func giveBack(_ batch: consuming [Element]) {
        batch.removeAll(keepingCapacity: batch.count <= 256)
        spare = batch
    }
}

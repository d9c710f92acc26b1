internal import CPlatform
internal import Glibc
internal import Synchronization

/// What other threads want to be done on a loop, in order; wakes the loop where it sleeps, with one system call for each sleep.
final class Mailbox: Sendable {
    enum Work {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    private struct State {
        var work: [Work] = []
        /// The loop sleeps, or is about to: whoever adds something wakes it.
        var isAsleep = false
        /// Nothing is taken any more.
        var hasEnded = false
    }

    private let state = Mutex(State())
    /// An eventfd(2), for the loop to watch.
    let alarm: Int32

    init() throws(LoopFailure) {
        alarm = watchword_event_descriptor()
        guard alarm >= 0 else { throw LoopFailure("eventfd") }
    }

    deinit { close(alarm) }

    /// `false` when the loop has ended: then it is never done.
    func add(_ work: Work) -> Bool {
        let (isTaken, wakes) = state.withLock { state in
            guard !state.hasEnded else { return (false, false) }
            state.work.append(work)
            defer { state.isAsleep = false }
            return (true, state.isAsleep)
        }
        // Not under the lock, for which the woken thread would have to wait at once.
        if wakes { ring() }
        return isTaken
    }

    private func ring() {
        var one: UInt64 = 1
        _ = write(alarm, &one, MemoryLayout.size(ofValue: one))
    }

    func silence() {
        var count: UInt64 = 0
        _ = read(alarm, &count, MemoryLayout.size(ofValue: count))
    }

    /// Whether the loop may sleep: not while something waits.
    func fallAsleep() -> Bool {
        state.withLock { state in
            state.isAsleep = state.work.isEmpty
            return state.isAsleep
        }
    }

    /// Takes all that waits; the loop is awake.
    func take() -> [Work] {
        state.withLock { state in
            state.isAsleep = false
            guard !state.work.isEmpty else { return [] }
            let work = state.work
            state.work = []
            return work
        }
    }

    /// From now on nothing is taken. Returns what was left.
    func end() -> [Work] {
        state.withLock { state in
            state.hasEnded = true
            defer { state.work = [] }
            return state.work
        }
    }
}

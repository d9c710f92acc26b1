internal import CPlatform
internal import Glibc

/// Wakes the loop at a given time. A wait of less than a second uses the timeout of epoll_wait(2); a longer one uses a
/// timerfd(2), which also counts the time during which the machine is suspended.
struct AlarmClock: ~Copyable {
    private static let shortWait = Duration.seconds(1)

    /// The timerfd, to be watched by the loop.
    let descriptor: Int32
    /// The time at which `descriptor` expires; `nil` if it is not set.
    private var rings: ContinuousClock.Instant?

    init() throws(LoopFailure) {
        descriptor = watchword_timer_descriptor()
        guard descriptor >= 0 else { throw LoopFailure("timerfd_create") }
    }

    deinit { close(descriptor) }

    /// Returns the timeout for epoll_wait(2) in milliseconds, rounded up so that it never ends early; -1 if the expiry
    /// of the descriptor ends the wait.
    mutating func wait(until next: ContinuousClock.Instant, from now: ContinuousClock.Instant) -> Int32 {
        let left = next - now
        guard left > .zero else { return 0 }
        guard left >= Self.shortWait else { return Int32((left / .milliseconds(1)).rounded(.up)) }
        // If the next timer was moved to a later time, the descriptor expires too early once. This is cheaper than
        // setting it again.
        if rings.map({ next < $0 }) ?? true {
            rings = next
            let (seconds, attoseconds) = left.components
            watchword_timer_set(descriptor, seconds * 1_000_000_000 + attoseconds / 1_000_000_000 + 1)
        }
        return -1
    }

    /// Reads the expired descriptor, so that it stops being readable.
    mutating func silence(at now: ContinuousClock.Instant) {
        guard let time = rings, time <= now else { return }
        var count: UInt64 = 0
        if read(descriptor, &count, MemoryLayout.size(ofValue: count)) > 0 { rings = nil }
    }
}

internal import CPlatform
internal import Glibc

/// A timer of a loop, which can be set, moved and cleared repeatedly. Used on its loop only.
///
/// Moving a timer to a later time or clearing it is cheap, because the timer stays at its place in the loop's queue
/// until its previous time is reached.
public final class LoopTimer {
    public typealias Instant = ContinuousClock.Instant

    private unowned let loop: EventLoop
    private let action: () -> Void
    /// The time at which the action runs; `nil` for never.
    public private(set) var deadline: Instant?
    /// The index in the queue.
    fileprivate var place: Int?
    /// The time by which the timer is ordered in the queue; may be earlier than `deadline`.
    fileprivate var queued: Instant?

    /// - Parameter action: retained until the timer is released.
    public init(on loop: EventLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    /// Sets the time at which the action runs once; `nil` clears the timer.
    public func set(_ deadline: Instant?) {
        self.deadline = deadline
        guard let deadline else { return }
        if let queued, queued <= deadline { return }
        loop.timers.insert(self, at: deadline)
    }

    public func set(in duration: Duration) { set(loop.now + duration) }

    /// Clears the timer, and removes it from the queue.
    public func cancel() {
        deadline = nil
        loop.timers.remove(self)
    }

    fileprivate func fire() {
        deadline = nil
        action()
    }
}

/// The timers of a loop, ordered by time: a binary heap in which each timer stores its index.
struct TimerQueue {
    private var heap: [LoopTimer] = []

    var next: LoopTimer.Instant? { heap.first?.queued }

    mutating func insert(_ timer: LoopTimer, at time: LoopTimer.Instant) {
        remove(timer)
        timer.queued = time
        timer.place = heap.count
        heap.append(timer)
        moveUp(heap.count - 1)
    }

    mutating func remove(_ timer: LoopTimer) {
        guard let place = timer.place else { return }
        (timer.place, timer.queued) = (nil, nil)
        let last = heap.removeLast()
        guard last !== timer else { return }
        put(last, at: place)
        moveUp(place)
        moveDown(last.place ?? place)
    }

    /// Removes and returns a due timer; `nil` if there is none. Timers that were moved to a later time are queued again
    /// for that time.
    mutating func takeDue(at now: LoopTimer.Instant) -> LoopTimer? {
        while let timer = heap.first, let queued = timer.queued, queued <= now {
            remove(timer)
            guard let deadline = timer.deadline else { continue }
            if deadline <= now { return timer }
            insert(timer, at: deadline)
        }
        return nil
    }

    private mutating func put(_ timer: LoopTimer, at place: Int) {
        heap[place] = timer
        timer.place = place
    }

    private func isBefore(_ left: LoopTimer, _ right: LoopTimer) -> Bool {
        guard let first = left.queued, let second = right.queued else { return false }
        return first < second
    }

    private mutating func moveUp(_ start: Int) {
        var place = start
        while place > 0, case let parent = (place - 1) / 2, isBefore(heap[place], heap[parent]) {
            exchange(place, parent)
            place = parent
        }
    }

    private mutating func moveDown(_ start: Int) {
        var place = start
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < heap.count && isBefore(heap[child], heap[least]) {
                least = child
            }
            guard least != place else { return }
            exchange(place, least)
            place = least
        }
    }

    private mutating func exchange(_ first: Int, _ second: Int) {
        let timer = heap[first]
        put(heap[second], at: first)
        put(timer, at: second)
    }
}

extension TimerQueue {
    /// Runs due timers, at most as many as the queue contains now, so that a timer that sets itself again cannot occupy
    /// the loop.
    static func run(of loop: EventLoop, at now: LoopTimer.Instant) {
        guard let next = loop.timers.next, next <= now else { return }
        for _ in 0..<loop.timers.heap.count {
            guard let timer = loop.timers.takeDue(at: now) else { return }
            timer.fire()
        }
    }
}

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

/// A time at which a loop does something: set, moved and cleared as often as one likes. Used on its loop only.
///
/// Moving it to a later time, or to none, costs nothing: it stays in the loop's queue where it is until its old time comes.
public final class LoopTimer {
    public typealias Instant = ContinuousClock.Instant

    private unowned let loop: EventLoop
    private let action: () -> Void
    /// When the action is to run; `nil` for never.
    public private(set) var deadline: Instant?
    /// Its place in the queue, and the time under which it stands there.
    fileprivate var place: Int?
    fileprivate var queued: Instant?

    /// - Parameter action: keeps alive what it captures, until the timer is gone.
    public init(on loop: EventLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    /// Runs the action at `deadline`, and not before; `nil` for never, unless it is set again.
    public func set(_ deadline: Instant?) {
        self.deadline = deadline
        guard let deadline else { return }
        if let queued, queued <= deadline { return }
        loop.timers.insert(self, at: deadline)
    }

    public func set(in duration: Duration) { set(loop.now + duration) }

    /// Never again runs the action, and lets go of it.
    public func cancel() {
        deadline = nil
        loop.timers.remove(self)
    }

    fileprivate func fire() {
        deadline = nil
        action()
    }
}

/// The timers of a loop, the next one first: a binary heap in which each timer knows its place.
struct TimerQueue {
    private var heap: [LoopTimer] = []

    /// When something has to be looked at.
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

    /// A timer whose time under which it stands has come; `nil` when there is none.
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
    /// Runs what is due; each timer once, though it may set itself again.
    static func run(of loop: EventLoop, at now: LoopTimer.Instant) {
        for _ in 0..<loop.timers.heap.count {
            guard let timer = loop.timers.takeDue(at: now) else { return }
            timer.fire()
        }
    }
}

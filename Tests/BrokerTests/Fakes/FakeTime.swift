import Broker
import Synchronization

/// A clock that stands still until a test moves it.
final class FakeClock: BrokerClock {
    private final class Action: ScheduledAction {
        private let cancelled: @Sendable () -> Void

        init(_ cancelled: @escaping @Sendable () -> Void) { self.cancelled = cancelled }

        func cancel() { cancelled() }
    }

    private struct Sleeper {
        let end: Duration
        let action: @Sendable () -> Void
    }

    private struct State {
        var now = Duration.zero
        var suspended = Duration.zero
        var last = 0
        var sleepers: [Int: Sleeper] = [:]
    }

    private let state = Mutex(State())

    var now: Duration { state.withLock { $0.now } }

    var suspended: Duration { state.withLock { $0.suspended } }

    var sinceEpoch: Duration { .seconds(1_000_000_000) + now }

    /// Suspends the machine: only the wall clock advances.
    func sleepMachine(for duration: Duration) { state.withLock { $0.suspended += duration } }

    /// How many actions wait for the time to pass.
    var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    func schedule(
        after duration: Duration, _ action: @escaping @Sendable () -> Void
    ) -> any ScheduledAction {
        let id = state.withLock { state in
            state.last += 1
            state.sleepers[state.last] = Sleeper(end: state.now + duration, action: action)
            return state.last
        }
        return Action { [weak self] in self?.drop(id) }
    }

    private func drop(_ id: Int) { _ = state.withLock { $0.sleepers.removeValue(forKey: id) } }

    /// Runs the actions that become due, in order, on the thread of the test.
    func advance(by duration: Duration) {
        state.withLock { $0.now += duration }
        let due = state.withLock { state in
            state.sleepers.filter { $0.value.end <= state.now }.sorted {
                ($0.value.end, $0.key) < ($1.value.end, $1.key)
            }
        }
        for (id, sleeper) in due {
            guard state.withLock({ $0.sleepers.removeValue(forKey: id) }) != nil else { continue }
            sleeper.action()
        }
    }
}

/// An event loop whose iterations the test runs itself: all work is done on the thread of the test, in order.
final class FakeLoop: SerialExecutor, BrokerLoop {
    private enum Work {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    private let work = Mutex<[Work]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        work.withLock { $0.append(.job(job)) }
    }

    @discardableResult
    func post(_ call: @escaping @Sendable () -> Void) -> Bool {
        work.withLock { $0.append(.call(call)) }
        return true
    }

    var turnTimes: (bounds: [Int], counts: [Int], longest: Duration) { ([1], [2, 0], .zero) }

    /// A test runs on one thread at a time, and this is the only thing that runs the broker.
    func isIsolatingCurrentContext() -> Bool? { true }

    func checkIsolated() {}

    /// Runs pending work, and the work that it schedules, until none is left.
    func turn() {
        while true {
            let waiting = work.withLock { work in
                defer { work = [] }
                return work
            }
            guard !waiting.isEmpty else { return }
            for item in waiting {
                switch item {
                case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
                case .call(let call): call()
                }
            }
        }
    }
}

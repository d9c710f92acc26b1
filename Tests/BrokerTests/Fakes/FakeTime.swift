import Broker
import Synchronization

/// A clock that stands still until a test moves it.
final class FakeClock: BrokerClock {
    private struct Sleeper {
        let end: Duration
        let continuation: CheckedContinuation<Void, any Error>
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

    /// The machine sleeps: time passes for nobody but the clock on the wall.
    func sleepMachine(for duration: Duration) { state.withLock { $0.suspended += duration } }

    /// How many tasks wait for the time to pass.
    var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    func sleep(for duration: Duration) async throws {
        let id = state.withLock { state in
            state.last += 1
            return state.last
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let isCancelled = Task.isCancelled
                state.withLock { state in
                    guard !isCancelled else { return continuation.resume(throwing: CancellationError()) }
                    state.sleepers[id] = Sleeper(end: state.now + duration, continuation: continuation)
                }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now += duration
            let due = state.sleepers.filter { $0.value.end <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.map(\.continuation)
        }
        for continuation in due { continuation.resume() }
    }
}

/// A loop whose turns a test takes itself: everything happens on the thread of the test, in order.
final class FakeLoop: SerialExecutor, BrokerLoop {
    private enum Work {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    private let work = Mutex<[Work]>([])

    var executor: any SerialExecutor { self }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        work.withLock { $0.append(.job(job)) }
    }

    func post(_ call: @escaping @Sendable () -> Void) { work.withLock { $0.append(.call(call)) } }

    /// A test runs on one thread at a time, and this is the only thing that runs the broker.
    func isIsolatingCurrentContext() -> Bool? { true }

    func checkIsolated() {}

    /// Runs what waits, and what that brings up, until nothing is left.
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

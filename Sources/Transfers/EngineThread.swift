internal import CCurl
internal import Glibc
internal import Synchronization

/// The thread that owns one libcurl multi handle, as an executor: what an actor on it does never runs at the same time as
/// libcurl.
///
/// GSS-API and name resolution may block inside libcurl; nothing else of the broker is on this thread.
final class EngineThread: SerialExecutor {
    private struct Mailbox {
        var jobs: [UnownedJob] = []
        /// The thread has found the mailbox empty and is about to sleep, or sleeps: whoever adds a job wakes it.
        var isPolling = false
        var isStopping = false
    }

    private let mailbox = Mutex(Mailbox())
    private let thread = Mutex<pthread_t?>(nil)
    let multi: MultiHandle

    init(_ multi: MultiHandle) { self.multi = multi }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let mustWake = mailbox.withLock { mailbox in
            mailbox.jobs.append(job)
            return mailbox.isPolling
        }
        if mustWake { multi.wake() }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    func checkIsolated() { precondition(isIsolatingCurrentContext() == true, "not on the engine's thread") }

    func isIsolatingCurrentContext() -> Bool? {
        thread.withLock { thread in thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// Starts the thread. `turn` runs on it after the jobs, once for each round.
    func start(_ turn: @escaping @Sendable () -> Void) {
        let body = Unmanaged.passRetained(ThreadBody { self.run(turn) })
        thread.withLock { thread in
            var created = pthread_t()
            let status = pthread_create(
                &created, nil,
                { argument in
                    guard let argument else { return nil }
                    Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().run()
                    return nil
                }, body.toOpaque())
            precondition(status == 0, "no thread for the transfer engine (error \(status))")
            thread = created
        }
    }

    /// Ends the thread after the jobs that wait, and returns when it is gone. Not to be called on the thread itself.
    func stop() {
        mailbox.withLock { $0.isStopping = true }
        multi.wake()
        // Known by its id to the very end: its last round asks whether it is this thread.
        if let ending = thread.withLock({ $0 }) { pthread_join(ending, nil) }
    }

    private func run(_ turn: () -> Void) {
        // `start` publishes the thread under the lock before anything may ask whether it is this one.
        thread.withLock { _ in }
        while true {
            runJobs()
            turn()
            let isDone = mailbox.withLock { mailbox in
                mailbox.isPolling = mailbox.jobs.isEmpty && !mailbox.isStopping
                return mailbox.jobs.isEmpty && mailbox.isStopping
            }
            if isDone { break }
            if mailbox.withLock({ $0.isPolling }) {
                multi.poll(milliseconds: EngineLimits.pollMilliseconds)
                mailbox.withLock { $0.isPolling = false }
            }
        }
    }

    private func runJobs() {
        let jobs = mailbox.withLock { mailbox in
            defer { mailbox.jobs.removeAll(keepingCapacity: true) }
            return mailbox.jobs
        }
        for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }
}

private final class ThreadBody {
    let run: () -> Void

    init(_ run: @escaping () -> Void) { self.run = run }
}

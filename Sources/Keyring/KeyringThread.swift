internal import CPlatform
internal import CSecret
internal import Glibc
internal import Synchronization
internal import WatchwordCore

/// The thread on which everything of the keyring happens that may wait: one call after the other, and between them GLib's main
/// context, which delivers the signals of the bus.
final class KeyringThread: Sendable {
    struct Job {
        var call: KeyringCall
        /// Does the work and answers the call. Runs on the thread.
        var run: @Sendable (KeyringWorker) -> Void
    }

    private struct Mailbox {
        var jobs: [Job] = []
        var running: KeyringCall?
        var isStopping = false
    }

    private let mailbox = Mutex(Mailbox())
    private let thread = Mutex<pthread_t?>(nil)
    // `nonisolated(unsafe)`: never changed, and g_main_context_wakeup may be called on every thread.
    private nonisolated(unsafe) let context: OpaquePointer

    init() {
        guard let context = g_main_context_new() else { preconditionFailure("GLib makes no main context") }
        self.context = context
    }

    deinit { g_main_context_unref(context) }

    /// Puts `job` into the mailbox. `false` when the thread has been stopped: then it never runs.
    func post(_ job: Job) -> Bool {
        let isTaken = mailbox.withLock { mailbox in
            if !mailbox.isStopping { mailbox.jobs.append(job) }
            return !mailbox.isStopping
        }
        wake()
        return isTaken
    }

    /// Drops the jobs whose calls are over, with the secrets that they hold, and makes the thread look whether its own is.
    func forgetWhatIsOver() {
        let over = mailbox.withLock { mailbox in
            let over = mailbox.jobs.filter(\.call.isOver)
            mailbox.jobs.removeAll(where: \.call.isOver)
            return over
        }
        wake()
        // They go here and not under the lock: nobody knows what else goes with them.
        withExtendedLifetime(over) {}
    }

    private func wake() { g_main_context_wakeup(context) }

    /// Starts the thread. `makeWorker` runs on it, and its worker never leaves it.
    func start(_ makeWorker: @escaping @Sendable (OpaquePointer) -> KeyringWorker) {
        let body = Unmanaged.passRetained(ThreadBody { self.run(makeWorker) })
        thread.withLock { thread in
            var created = pthread_t()
            let status = pthread_create(
                &created, nil,
                { argument in
                    guard let argument else { return nil }
                    Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().run()
                    return nil
                }, body.toOpaque())
            precondition(status == 0, "no thread for the keyring (error \(status))")
            thread = created
        }
    }

    /// Answers what runs and what waits with `failure`, and returns when the thread is gone. Not to be called on the thread
    /// itself. More calls do nothing.
    func stop(_ failure: KeyringFailure) {
        let calls = mailbox.withLock { mailbox in
            defer { mailbox.jobs = [] }
            mailbox.isStopping = true
            return [mailbox.running].compactMap(\.self) + mailbox.jobs.map(\.call)
        }
        for call in calls { call.end(failure) }
        wake()
        let ending = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        if let ending { pthread_join(ending, nil) }
    }

    private func run(_ makeWorker: (OpaquePointer) -> KeyringWorker) {
        // Objects of GIO deliver their signals to the context that is the thread's default when they are made.
        g_main_context_push_thread_default(context)
        let worker = makeWorker(context)
        while true {
            let (job, isStopping) = mailbox.withLock { mailbox in
                let job = mailbox.jobs.isEmpty ? nil : mailbox.jobs.removeFirst()
                mailbox.running = job?.call
                return (job, mailbox.isStopping)
            }
            if let job {
                if !job.call.isOver { job.run(worker) }
                watchword_clear_stack()
            } else if isStopping {
                break
            } else {
                // A wake-up between the look into the mailbox and this wait is not lost: the context remembers it.
                g_main_context_iteration(context, gboolean(1))
            }
        }
        worker.close()
        while g_main_context_iteration(context, 0) != 0 {}
        g_main_context_pop_thread_default(context)
    }
}

private final class ThreadBody {
    let run: () -> Void

    init(_ run: @escaping () -> Void) { self.run = run }
}

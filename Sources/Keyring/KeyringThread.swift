internal import CPlatform
internal import CSecret
internal import Glibc
internal import Synchronization
internal import Threads
internal import WatchwordCore

/// The thread that does all blocking work for the keyring. It processes one call after the other, and between calls runs GLib's
/// main context, which delivers the signals of the bus.
///
/// The thread starts with the first call, and loads libsecret and GLib.
final class KeyringThread: Sendable {
    struct Job {
        var call: KeyringCall
        /// Does the work and completes the call. Runs on the thread.
        var run: @Sendable (KeyringWorker) -> Void
    }

    typealias MakeWorker = @Sendable (OpaquePointer) -> KeyringWorker

    private struct Mailbox {
        var jobs: [Job] = []
        var running: KeyringCall?
        /// `nil` while the thread runs.
        var makeWorker: MakeWorker?
        var thread: OwnedThread?
        /// The thread's main context, to wake it; `nil` until the thread has loaded GLib. No wake-up is needed before, because
        /// the thread checks the mailbox before it first waits.
        var context: OpaquePointer?
        /// Why no more jobs are accepted; `nil` while they are.
        var refusal: KeyringFailure?
    }

    private let mailbox = Mutex(Mailbox())

    /// - Parameter makeWorker: makes the worker; called on the thread, and the worker is used on that thread only.
    func setWorker(_ makeWorker: @escaping MakeWorker) {
        mailbox.withLock { $0.makeWorker = makeWorker }
    }

    /// Queues `job`. If it will never run, returns the failure.
    func post(_ job: Job) -> KeyringFailure? {
        let refusal = mailbox.withLock { mailbox -> KeyringFailure? in
            if let refusal = mailbox.refusal { return refusal }
            if let makeWorker = mailbox.makeWorker {
                do throws(OwnedThread.Failure) {
                    mailbox.thread = try OwnedThread { self.run(makeWorker) }
                } catch { return .noThread(error.error) }
                mailbox.makeWorker = nil
            }
            mailbox.jobs.append(job)
            return nil
        }
        wake()
        return refusal
    }

    /// Drops the queued jobs whose calls are over, with the secrets that they hold. Wakes the thread, so that it also checks
    /// the running call.
    func dropFinishedJobs() {
        let over = mailbox.withLock { mailbox in
            let over = mailbox.jobs.filter(\.call.isOver)
            mailbox.jobs.removeAll(where: \.call.isOver)
            return over
        }
        wake()
        // Releases the jobs here and not under the lock, because that may run deinitializers of any kind.
        withExtendedLifetime(over) {}
    }

    private func wake() {
        mailbox.withLock { if let context = $0.context { g_main_context_wakeup(context) } }
    }

    /// Completes the running and the queued calls with `failure`, and returns when the thread has ended. Must not be called on
    /// the thread itself. Further calls do nothing.
    func stop(_ failure: KeyringFailure) {
        refuse(failure)
        wake()
        let ending = mailbox.withLock { mailbox in
            defer { mailbox.thread = nil }
            return mailbox.thread
        }
        ending?.join()
    }

    private func refuse(_ failure: KeyringFailure) {
        let calls = mailbox.withLock { mailbox in
            defer { mailbox.jobs = [] }
            (mailbox.refusal, mailbox.makeWorker) = (mailbox.refusal ?? failure, nil)
            return [mailbox.running].compactMap(\.self) + mailbox.jobs.map(\.call)
        }
        for call in calls { call.end(failure) }
    }

    /// Completes the queued calls with `failure` when the thread ends early. The next job starts another thread.
    private func end(_ failure: KeyringFailure, _ makeWorker: @escaping MakeWorker) {
        let (calls, thread) = mailbox.withLock { mailbox in
            defer { (mailbox.jobs, mailbox.thread) = ([], nil) }
            if mailbox.refusal == nil { mailbox.makeWorker = makeWorker }
            return (mailbox.jobs.map(\.call), mailbox.thread)
        }
        // If it is `nil`, `stop` has taken the thread and joins it.
        thread?.detach()
        for call in calls { call.end(failure) }
    }

    private func run(_ makeWorker: @escaping MakeWorker) {
        do { try SecretLibrary.load() } catch { return end(error, makeWorker) }
        // GIO objects deliver their signals to the main context that is the thread's default when they are created.
        g_main_context_push_thread_default(g_main_context_new())
        guard let context = g_main_context_get_thread_default() else {
            preconditionFailure("the thread has no default main context")
        }
        // Nothing that allocates memory is called with the mailbox locked, because other threads need it.
        mailbox.withLock { $0.context = g_main_context_get_thread_default() }
        let worker = makeWorker(context)
        serve(worker, context)
        worker.close()
        while g_main_context_iteration(context, 0) != 0 {}
        mailbox.withLock { $0.context = nil }
        g_main_context_pop_thread_default(context)
        g_main_context_unref(context)
    }

    /// Runs the jobs. Returns when no more are accepted.
    private func serve(_ worker: KeyringWorker, _ context: OpaquePointer) {
        while true {
            let (job, isStopping) = mailbox.withLock { mailbox in
                let job = mailbox.jobs.isEmpty ? nil : mailbox.jobs.removeFirst()
                mailbox.running = job?.call
                return (job, mailbox.refusal != nil)
            }
            if let job {
                if job.call.begin() { job.run(worker) }
                watchword_clear_stack()
            } else if isStopping {
                return
            } else {
                // A wake-up between the check of the mailbox and this wait is not lost: the context records it.
                g_main_context_iteration(context, gboolean(1))
            }
        }
    }
}

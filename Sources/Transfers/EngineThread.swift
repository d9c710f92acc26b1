internal import CCurl
internal import CPlatform
internal import Glibc
internal import Synchronization
internal import WatchwordCore

/// The thread that owns one libcurl multi handle, as an executor: what an actor on it does never runs at the same time as
/// libcurl.
///
/// A token that signs a handshake may hold it up; nothing else of the broker is on this thread. What may take longer (files,
/// KDCs, the loading of tokens) has threads of its own: see `PreparationTable`.
final class EngineThread: SerialExecutor {
    private enum Work {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    private struct Mailbox {
        var work: [Work] = []
        /// The thread has found the mailbox empty and is about to sleep, or sleeps: whoever adds something wakes it.
        var isPolling = false
        var isStopping = false
        /// The thread takes nothing any more.
        var hasEnded = false
    }

    private let mailbox = Mutex(Mailbox())
    private let thread = Mutex<pthread_t?>(nil)
    /// What `sleep` has to wait for besides its own.
    let alarm: Alarm

    /// - Throws: `TransferFailure` when there is no descriptor left.
    init() throws(TransferFailure) { alarm = try Alarm() }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // What is still asked of a thread that is gone must not wait for ever.
        if !add(.job(job)) { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    /// Runs `call` on the thread, in turn. `false` when the thread has ended: then it never runs.
    func post(_ call: @escaping @Sendable () -> Void) -> Bool { add(.call(call)) }

    /// Ends the thread's sleep before there is work: an idle thread takes tens of microseconds to wake up, and what it is to do
    /// takes about as long to be put together.
    func wake() {
        let isFirst = mailbox.withLock { Self.endsSleep(&$0) }
        if isFirst { alarm.ring() }
    }

    private func add(_ work: Work) -> Bool {
        let (isTaken, isFirst) = mailbox.withLock { mailbox in
            guard !mailbox.hasEnded else { return (false, false) }
            mailbox.work.append(work)
            return (true, Self.endsSleep(&mailbox))
        }
        // Not under the lock, for which the woken thread would have to wait at once.
        if isFirst { alarm.ring() }
        return isTaken
    }

    /// One wake-up is enough for one sleep.
    private static func endsSleep(_ mailbox: inout Mailbox) -> Bool {
        defer { mailbox.isPolling = false }
        return mailbox.isPolling
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    func checkIsolated() { precondition(isIsolatingCurrentContext() == true, "not on the engine's thread") }

    func isIsolatingCurrentContext() -> Bool? {
        thread.withLock { thread in thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// Starts the thread. `turn` runs on it after the waiting work, once for each round; `sleep` when there is no more, and
    /// ends when the alarm rings.
    func start(turn: @escaping @Sendable () -> Void, sleep: @escaping @Sendable () -> Void) {
        let body = Unmanaged.passRetained(ThreadBody { self.run(turn, sleep) })
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

    /// Ends the thread after the work that waits, and returns when it is gone. Not to be called on the thread itself.
    func stop() {
        mailbox.withLock { $0.isStopping = true }
        wake()
        // Known by its id to the very end: its last round asks whether it is this thread.
        if let ending = thread.withLock({ $0 }) { pthread_join(ending, nil) }
    }

    private func run(_ turn: () -> Void, _ sleep: () -> Void) {
        // `start` publishes the thread under the lock before anything may ask whether it is this one.
        thread.withLock { _ in }
        while true {
            runWork()
            turn()
            let (hasEnded, isPolling) = mailbox.withLock { mailbox in
                mailbox.isPolling = mailbox.work.isEmpty && !mailbox.isStopping
                mailbox.hasEnded = mailbox.work.isEmpty && mailbox.isStopping
                return (mailbox.hasEnded, mailbox.isPolling)
            }
            if hasEnded { break }
            if isPolling {
                watchword_clear_stack()
                sleep()
                mailbox.withLock { $0.isPolling = false }
            }
        }
    }

    private func runWork() {
        let waiting = mailbox.withLock { mailbox in
            let work = mailbox.work
            mailbox.work = []
            return work
        }
        for work in waiting {
            switch work {
            case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
            case .call(let call): call()
            }
        }
    }
}

private final class ThreadBody {
    let run: () -> Void

    init(_ run: @escaping () -> Void) { self.run = run }
}

internal import CPlatform
internal import Glibc
internal import Synchronization

/// An event loop on one thread, for descriptors, timers and calls from other threads. As a serial executor, it runs
/// actors on the same thread.
///
/// Each turn of the loop waits for events, calls the handlers of ready descriptors, runs due timers and posted calls,
/// and calls the handlers for the end of the turn, which send collected output, for example. Handlers must not block.
///
/// `@unchecked Sendable`: `post`, `enqueue` and `stop` may be called on any thread; everything else is used only on the
/// loop's own thread.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
    private let mailbox: Mailbox
    private var polls: PollSet
    private let alarm = AlarmHandler()
    private var alarmClock: AlarmClock
    var timers = TimerQueue()
    private var later = Batches<() -> Void>()
    private var ending = Batches<any TurnEndHandler>()
    private var isStopping = false
    /// The thread that runs the loop; before `run`, the thread that created it.
    private let owner = Atomic(pthread_self())
    private var clock = TurnClock()

    /// Creates a loop that belongs to the calling thread until another thread calls `run`.
    public init() throws(LoopFailure) {
        mailbox = try Mailbox()
        polls = try PollSet()
        alarmClock = try AlarmClock()
        for descriptor in [mailbox.alarm, alarmClock.descriptor] {
            let error = polls.watch(descriptor, .readable, alarm)
            guard error == 0 else { throw LoopFailure("epoll_ctl", error: error) }
        }
    }

    /// The time at which this turn began.
    public var now: ContinuousClock.Instant { clock.start }

    /// Statistics of the durations of turns.
    public var turns: TurnFigures { clock.figures }

    // MARK: On any thread

    /// Runs `call` on the loop, after all calls posted before.
    /// - Returns: `false` if the loop has ended; then `call` is never run.
    @discardableResult
    public func post(_ call: @escaping @Sendable () -> Void) -> Bool { mailbox.add(.call(call)) }

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The loop has ended and will not run the job.
        if !mailbox.add(.job(job)) { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    public func checkIsolated() { precondition(isCurrent, "not on the thread of this event loop") }

    private var isCurrent: Bool { owner.load(ordering: .relaxed) == pthread_self() }

    /// Ends `run` after all calls posted before.
    public func stop() { post { [self] in isStopping = true } }

    // MARK: On the loop

    /// Calls `handler` in every turn in which `descriptor` has one of `events` (level-triggered), until `forget`.
    /// Retains the handler.
    /// - Returns: `false` if the kernel cannot watch the descriptor.
    @discardableResult
    public func watch(_ descriptor: Int32, _ events: ReadyEvents, _ handler: any ReadinessHandler) -> Bool {
        polls.watch(descriptor, events, handler) == 0
    }

    /// Stops watching a descriptor. To be called before the descriptor is closed.
    /// - Parameter handler: required if the descriptor may be closed already and its number reused: then only a watch
    ///   with this handler ends.
    public func forget(_ descriptor: Int32, of handler: (any ReadinessHandler)? = nil) {
        polls.forget(descriptor, of: handler)
    }

    /// Runs `call` later in this turn, or in the next turn if calls repeatedly add more calls.
    public func soon(_ call: @escaping () -> Void) { later.append(call) }

    /// Calls `handler` at the end of this turn. To be called at most once per turn.
    public func atEndOfTurn(_ handler: any TurnEndHandler) { ending.append(handler) }

    /// Runs the loop on the calling thread until `stop` is called.
    public func run() {
        owner.store(pthread_self(), ordering: .relaxed)
        while !isStopping { turn() }
        for work in mailbox.end() { perform(work) }
        runLater()
        endTurn()
    }

    private func turn() {
        let isBusy = !later.isEmpty || !mailbox.fallAsleep()
        let count = polls.wait(milliseconds: isBusy ? 0 : waitMilliseconds)
        clock.begin()
        for index in 0..<count {
            if let (descriptor, events, handler) = polls.event(index) { handler.ready(descriptor, events) }
        }
        alarmClock.silence(at: now)
        TimerQueue.run(of: self, at: now)
        runLater()
        let posted = mailbox.take()
        if alarm.hasRung { silenceAlarm() }
        for work in posted { perform(work) }
        runLater()
        endTurn()
        clock.end()
        // Handlers may have left credentials on the stack.
        watchword_clear_stack()
    }

    private func perform(_ work: Mailbox.Work) {
        switch work {
        case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
        case .call(let call): call()
        }
    }

    /// Runs the calls added with `soon`, and the calls that these add, for at most eight rounds.
    private func runLater() {
        for _ in 0..<8 where !later.isEmpty {
            let calls = later.take()
            for call in calls { call() }
            later.giveBack(calls)
        }
    }

    private func endTurn() {
        while !ending.isEmpty {
            let handlers = ending.take()
            for handler in handlers { handler.turnEnds() }
            ending.giveBack(handlers)
        }
    }

    // MARK: Waiting

    private var waitMilliseconds: Int32 {
        timers.next.map { alarmClock.wait(until: $0, from: clock.lastEnd) } ?? -1
    }

    private func silenceAlarm() {
        alarm.hasRung = false
        mailbox.silence()
    }

    /// Records that the loop was woken by another thread or by the timerfd.
    private final class AlarmHandler: ReadinessHandler {
        var hasRung = false

        func ready(_ descriptor: Int32, _ events: ReadyEvents) { hasRung = true }
    }
}

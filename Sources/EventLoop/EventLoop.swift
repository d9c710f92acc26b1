internal import CPlatform
internal import Glibc
internal import Synchronization

/// One thread that waits for everything at once: descriptors, times, and what other threads want. It is an executor, so that an
/// actor on it is called without a change of thread.
///
/// A turn is: wait, tell what has happened, run what is due, run what was posted, and let everybody who has asked for it finish
/// the turn (send what was collected, for example). Nothing in it may block.
///
/// `@unchecked Sendable`: `post`, `enqueue` and `stop` may be called on every thread; everything else is used on the loop's own,
/// and checked to be.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
    /// Beyond this the clock of the machine counts, sleep included, and not that of epoll_wait.
    private static let shortWait = Duration.seconds(1)

    private let mailbox: Mailbox
    private var polls: PollSet
    private let alarm = AlarmHandler()
    private let timerDescriptor: Int32
    /// When `timerDescriptor` rings.
    private var timerIsSet: ContinuousClock.Instant?
    var timers = TimerQueue()
    private var later = Batches<() -> Void>()
    private var ending = Batches<any TurnEndHandler>()
    private var isStopping = false
    /// The thread that has made the loop, and then the one that runs it.
    private let owner = Atomic(pthread_self())
    private var turnEnd = ContinuousClock.now
    /// How long turns have taken.
    public private(set) var turns = TurnFigures()
    /// When this turn began: read once for all that happens in it.
    public private(set) var now = ContinuousClock.now

    /// A loop of the calling thread, until another one runs it.
    public init() throws(LoopFailure) {
        mailbox = try Mailbox()
        polls = try PollSet()
        timerDescriptor = watchword_timer_descriptor()
        guard timerDescriptor >= 0 else { throw LoopFailure("timerfd_create") }
        for descriptor in [mailbox.alarm, timerDescriptor] {
            let error = polls.watch(descriptor, .readable, alarm)
            guard error == 0 else { throw LoopFailure("epoll_ctl", error: error) }
        }
    }

    deinit { close(timerDescriptor) }

    // MARK: From every thread

    /// Runs `call` in one of the next turns, in the order of the calls. `false` when the loop has ended: then it never runs.
    @discardableResult
    public func post(_ call: @escaping @Sendable () -> Void) -> Bool { mailbox.add(.call(call)) }

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // What is still asked of a loop that has ended must not wait for ever.
        if !mailbox.add(.job(job)) { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    public func checkIsolated() { precondition(isCurrent, "not on the thread of this event loop") }

    private var isCurrent: Bool { owner.load(ordering: .relaxed) == pthread_self() }

    /// Ends `run` after this turn and what was posted before.
    public func stop() { post { [self] in isStopping = true } }

    // MARK: On the loop

    /// Tells `handler` of `events` on `descriptor`, again and again while they last, until `forget`. Holds the handler.
    /// - Returns: `false` where the kernel cannot watch it.
    @discardableResult
    public func watch(_ descriptor: Int32, _ events: ReadyEvents, _ handler: any ReadinessHandler) -> Bool {
        polls.watch(descriptor, events, handler) == 0
    }

    /// To be called before the descriptor is closed; with `handler`, if it is closed already and another may have its number.
    public func forget(_ descriptor: Int32, of handler: (any ReadinessHandler)? = nil) {
        polls.forget(descriptor, of: handler)
    }

    /// Runs `call` in this turn, when everything that is going on has returned; and in the next one, if this turn has done
    /// much already.
    public func soon(_ call: @escaping () -> Void) { later.append(call) }

    /// Lets `handler` finish this turn. To be said once for each turn.
    public func atEndOfTurn(_ handler: any TurnEndHandler) { ending.append(handler) }

    /// Turns until it is told to stop.
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
        now = .now
        for index in 0..<count {
            if let (descriptor, events, handler) = polls.event(index) { handler.ready(descriptor, events) }
        }
        if let rings = timerIsSet, rings <= now { silenceTimer() }
        TimerQueue.run(of: self, at: now)
        runLater()
        let posted = mailbox.take()
        if alarm.hasRung { silenceAlarm() }
        for work in posted { perform(work) }
        runLater()
        endTurn()
        turnEnd = .now
        turns.note(turnEnd - now)
        // What has come, or ended, may have been a login.
        watchword_clear_stack()
    }

    private func perform(_ work: Mailbox.Work) {
        switch work {
        case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
        case .call(let call): call()
        }
    }

    /// Each may bring up more, which has its turn as well, as long as that is not without end.
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

    /// Rounded up, so that the time has come when the wait ends.
    private var waitMilliseconds: Int32 {
        guard let next = timers.next else { return -1 }
        let left = next - turnEnd
        guard left > .zero else { return 0 }
        guard left >= Self.shortWait else { return Int32((left / .milliseconds(1)).rounded(.up)) }
        // A timer that is moved to a later time lets the descriptor ring in vain, once: cheaper than to set it again.
        if timerIsSet.map({ next < $0 }) ?? true {
            timerIsSet = next
            let (seconds, attoseconds) = left.components
            watchword_timer_set(timerDescriptor, seconds * 1_000_000_000 + attoseconds / 1_000_000_000 + 1)
        }
        return -1
    }

    private func silenceTimer() {
        var count: UInt64 = 0
        if read(timerDescriptor, &count, MemoryLayout.size(ofValue: count)) > 0 { timerIsSet = nil }
    }

    private func silenceAlarm() {
        alarm.hasRung = false
        mailbox.silence()
    }

    /// Notes that the loop was woken; there is nothing else to it.
    private final class AlarmHandler: ReadinessHandler {
        var hasRung = false

        func ready(_ descriptor: Int32, _ events: ReadyEvents) { hasRung = true }
    }
}

import Dispatch
import Glibc
import Synchronization
import Testing

@testable import EventLoop

/// Records what happens on a loop, in order.
private final class Record: ReadinessHandler, TurnEndHandler {
    var words: [String] = []
    private let loop: EventLoop
    private var reading: ((Int32) -> Void)?

    init(_ loop: EventLoop, reading: ((Int32) -> Void)? = nil) { (self.loop, self.reading) = (loop, reading) }

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        words.append(events.contains(.readable) ? "readable" : events.contains(.hungUp) ? "hung up" : "writable")
        if let reading { reading(descriptor) } else { loop.forget(descriptor) }
        loop.stop()
    }

    func turnEnds() { words.append("end of turn") }
}

private func pair() -> (Int32, Int32) {
    var sockets: [Int32] = [-1, -1]
    precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &sockets) == 0)
    return (sockets[0], sockets[1])
}

/// Event loops, each on the thread of its test.
@Suite struct EventLoopTests {
    private let loop: EventLoop

    init() throws { loop = try EventLoop() }

    /// Runs the loop until it is told to stop; a test that does not tell it ends after a minute.
    private func run() {
        let limit = LoopTimer(on: loop) { [loop] in
            Issue.record("nothing has stopped the loop")
            loop.stop()
        }
        limit.set(in: .seconds(60))
        loop.run()
        limit.cancel()
    }

    @Test func readableDescriptorsAreReported() {
        let (mine, other) = pair()
        defer { for descriptor in [mine, other] { close(descriptor) } }
        let record = Record(loop)
        #expect(loop.watch(mine, .readable, record))
        _ = write(other, "x", 1)
        run()
        #expect(record.words == ["readable"])
    }

    @Test func aHangupIsReportedWithoutAnyWatchedEvent() {
        let (mine, other) = pair()
        defer { close(mine) }
        let record = Record(loop)
        loop.watch(mine, [], record)
        close(other)
        run()
        #expect(record.words == ["hung up"])
    }

    /// Two events in one iteration: the handler of the first closes the descriptor of the second, whose number is reused.
    @Test func anEventOfAClosedDescriptorIsNotForTheNextOfItsNumber() {
        let (first, firstPeer) = pair()
        let (second, secondPeer) = pair()
        let later = Record(loop)
        var freshPeers: [Int32] = []
        let record = Record(loop) { [loop] descriptor in
            let other = descriptor == first ? second : first
            for one in [descriptor, other] { loop.forget(one) }
            // Closes the descriptor and reuses its number in one step, because other tests open descriptors, too.
            let (fresh, freshPeer) = pair()
            freshPeers.append(freshPeer)
            #expect(dup2(fresh, other) == other)
            close(fresh)
            loop.watch(other, .readable, later)
        }
        for (mine, peer) in [(first, firstPeer), (second, secondPeer)] {
            loop.watch(mine, .readable, record)
            _ = write(peer, "x", 1)
        }
        run()
        #expect(record.words == ["readable"])
        #expect(later.words.isEmpty)
        for descriptor in [first, firstPeer, second, secondPeer] + freshPeers { close(descriptor) }
    }

    /// The previous handler of a descriptor number cannot end the watch of the current one.
    @Test func onlyTheHandlerEndsItsWatch() {
        let (mine, other) = pair()
        defer { for descriptor in [mine, other] { close(descriptor) } }
        let (before, record) = (Record(loop), Record(loop))
        loop.watch(mine, .readable, before)
        loop.watch(mine, .readable, record)
        loop.forget(mine, of: before)
        _ = write(other, "x", 1)
        run()
        #expect(record.words == ["readable"])
    }

    @Test func postedWorkRunsInOrder() async throws {
        let thread = try LoopThread()
        let seen = Mutex<[Int]>([])
        for number in 0..<1000 { thread.loop.post { seen.withLock { $0.append(number) } } }
        thread.end()
        #expect(seen.withLock { $0 } == Array(0..<1000))
        #expect(!thread.loop.post {})
    }

    /// Its descriptors are closed with it.
    @Test func aLoopThatHasEndedIsReleased() throws {
        weak var loop: EventLoop?
        do {
            let thread = try LoopThread()
            loop = thread.loop
            let timer = LoopTimer(on: thread.loop) {}
            thread.loop.post { _ = 1 }
            _ = timer
            thread.end()
        }
        #expect(loop == nil)
    }

    @Test func aSleepingLoopIsWoken() throws {
        let thread = try LoopThread()
        defer { thread.end() }
        for _ in 0..<200 {
            let done = DispatchSemaphore(value: 0)
            thread.loop.post { done.signal() }
            #expect(done.wait(timeout: .now() + 60) == .success)
        }
    }

    @Test func actorsRunOnIt() async throws {
        actor Resident {
            let loop: EventLoop
            nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
            init(_ loop: EventLoop) { self.loop = loop }
            func isHome() -> Bool? { loop.isIsolatingCurrentContext() }
        }
        let thread = try LoopThread()
        #expect(await Resident(thread.loop).isHome() == true)
        thread.end()
        // A call after the end of the thread does not wait forever.
        #expect(await Resident(thread.loop).isHome() != nil)
    }

    @Test func aTurnRunsTimersThenCallsThenItsEnd() {
        let record = Record(loop)
        let timer = LoopTimer(on: loop) { [loop] in
            record.words.append("timer")
            loop.atEndOfTurn(record)
            loop.soon {
                record.words.append("soon")
                loop.soon { record.words.append("sooner or later") }
            }
            loop.stop()
        }
        timer.set(in: .zero)
        run()
        #expect(record.words == ["timer", "soon", "sooner or later", "end of turn"])
    }

    /// Work that schedules itself again does not starve other work.
    @Test func workThatAlwaysRepeatsLeavesTimeForOthers() {
        let count = Mutex(0)
        @Sendable func again() {
            count.withLock { $0 += 1 }
            loop.soon { again() }
        }
        again()
        let (mine, other) = pair()
        defer { for descriptor in [mine, other] { close(descriptor) } }
        let record = Record(loop)
        loop.watch(mine, .readable, record)
        _ = write(other, "x", 1)
        run()
        #expect(record.words == ["readable"])
        #expect(count.withLock { $0 } < 100)
    }

    @Test func turnDurationsAreCounted() {
        var within = Duration.zero
        loop.soon { [loop] in
            within = ContinuousClock().measure { for _ in 0..<1000 { loop.soon {} } }
            loop.stop()
        }
        run()
        #expect(within > .zero && loop.turns.longest >= within)
        #expect(loop.turns.counts.reduce(0, +) > 0)
    }

    @Test func turnDurationsAreCountedByTheirBounds() {
        var figures = TurnFigures()
        for milliseconds in [0, 1, 49, 50, 60] { figures.record(.milliseconds(milliseconds)) }
        #expect(TurnFigures.boundsMilliseconds == [1, 2, 5, 10, 50])
        #expect(figures.counts == [1, 1, 0, 0, 1, 2])
        #expect(figures.longest == .milliseconds(60))
    }
}

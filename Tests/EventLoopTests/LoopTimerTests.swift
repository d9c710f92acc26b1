import Testing

@testable import EventLoop

@Suite struct LoopTimerTests {
    private let loop: EventLoop
    private let seen = Seen()

    private final class Seen {
        var words: [String] = []
    }

    init() throws { loop = try EventLoop() }

    private func timer(_ word: String) -> LoopTimer { LoopTimer(on: loop) { [seen] in seen.words.append(word) } }

    /// Runs the loop for `duration`.
    private func run(for duration: Duration) {
        let end = LoopTimer(on: loop) { [loop] in loop.stop() }
        end.set(in: duration)
        loop.run()
    }

    @Test func timersRunInTheOrderOfTheirTimes() {
        let timers = (0..<50).map { timer("\($0)") }
        for index in timers.indices.shuffled() { timers[index].set(in: .milliseconds(index)) }
        run(for: .milliseconds(80))
        #expect(seen.words == (0..<50).map(String.init))
        #expect(loop.timers.next == nil)
    }

    @Test func aTimerRunsOnceAndMayBeSetAgain() {
        let timer = timer("tick")
        timer.set(in: .milliseconds(1))
        run(for: .milliseconds(20))
        #expect(seen.words == ["tick"])
        #expect(timer.deadline == nil)
    }

    @Test func settingATimerReplacesItsTime() {
        let (later, earlier, never) = (timer("later"), timer("earlier"), timer("never"))
        later.set(in: .milliseconds(1))
        later.set(in: .seconds(40))
        earlier.set(in: .seconds(500))
        earlier.set(in: .milliseconds(10))
        never.set(in: .milliseconds(5))
        never.set(nil)
        run(for: .milliseconds(20))
        #expect(seen.words == ["earlier"])
    }

    @Test func aLongWaitEndsAndNotEarly() {
        // Until its first iteration, the loop uses this as the current time.
        let begin = loop.now
        run(for: .milliseconds(1100))
        #expect(ContinuousClock.now - begin >= .milliseconds(1100))
    }

    /// Deadlines are long and most are cancelled soon: their actions must not stay in memory until then.
    @Test func aCancelledTimerReleasesItsAction() {
        weak var held: Seen?
        do {
            let target = Seen()
            held = target
            var timers = (0..<100).map { _ in LoopTimer(on: loop) { target.words.append("no") } }
            for (index, timer) in timers.enumerated() { timer.set(in: .seconds(300 + index % 7)) }
            for timer in timers.shuffled() { timer.cancel() }
            timers = []
        }
        #expect(held == nil)
        #expect(loop.timers.next == nil)
    }

    /// Such a timer does not block other work of the loop.
    @Test func aTimerThatIsAlwaysDueRunsOncePerTurn() {
        let count = Seen()
        var timer: LoopTimer?
        timer = LoopTimer(on: loop) { [loop] in
            count.words.append("due")
            // A loop that runs it without end would not return.
            if count.words.count < 1000 { timer?.set(in: .zero) }
            // A posted call runs after the timers of an iteration.
            if count.words.count == 3 { loop.stop() }
        }
        timer?.set(in: .zero)
        run(for: .seconds(10))
        timer?.cancel()
        timer = nil
        #expect((3...4).contains(count.words.count))
    }
}

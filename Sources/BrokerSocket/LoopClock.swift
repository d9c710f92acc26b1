public import Broker
public import EventLoop
internal import Glibc

/// A clock that reads the time of an event loop, which changes once per turn.
public struct LoopClock: BrokerClock {
    private let loop: EventLoop
    private let start: ContinuousClock.Instant
    private let startAwake = SuspendingClock.now

    public init(of loop: EventLoop) {
        self.loop = loop
        start = loop.now
    }

    public var now: Duration { loop.now - start }

    public var suspended: Duration { (ContinuousClock.now - start) - (SuspendingClock.now - startAwake) }

    public var sinceEpoch: Duration {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    public func schedule(
        after duration: Duration, _ action: @escaping @Sendable () -> Void
    ) -> any ScheduledAction {
        LoopAction(on: loop, after: duration, action)
    }
}

private final class LoopAction: ScheduledAction {
    private let timer: LoopBound<LoopTimer>

    init(on loop: EventLoop, after duration: Duration, _ action: @escaping @Sendable () -> Void) {
        timer = LoopBound(LoopTimer(on: loop, action), to: loop)
        timer.value.set(in: duration)
    }

    func cancel() { timer.value.cancel() }
}

extension EventLoop: BrokerLoop {
    public var turnTimes: TurnTimes {
        TurnTimes(bounds: TurnFigures.boundsMilliseconds, counts: turns.counts, longest: turns.longest)
    }
}

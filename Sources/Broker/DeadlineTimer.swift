/// Does something once, after a while, unless it is cancelled or dropped before.
final class DeadlineTimer {
    private let action: any ScheduledAction

    init(after duration: Duration, _ clock: any BrokerClock, _ action: @escaping @Sendable () -> Void) {
        self.action = clock.schedule(after: duration, action)
    }

    deinit { action.cancel() }

    func cancel() { action.cancel() }
}

extension Broker {
    /// Runs `action` after `duration`, unless the timer is dropped before.
    func after(_ duration: Duration, _ action: @escaping @Sendable (isolated Broker) -> Void) -> DeadlineTimer {
        DeadlineTimer(after: duration, clock) { self.assumeIsolated(action) }
    }

    /// The same, with nothing that could be dropped.
    func eventually(after duration: Duration, _ action: @escaping @Sendable (isolated Broker) -> Void) {
        _ = clock.schedule(after: duration) { self.assumeIsolated(action) }
    }
}

/// Does something once, after a while, unless it is cancelled or dropped before.
final class DeadlineTimer {
    private let action: any ScheduledAction

    init(after duration: Duration, _ clock: any BrokerClock, _ action: @escaping @Sendable () -> Void) {
        self.action = clock.schedule(after: duration, action)
    }

    deinit { action.cancel() }

    func cancel() { action.cancel() }
}

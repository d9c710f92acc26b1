/// The way back to a desk, on the broker's executor: for what comes later, or from another thread. A desk itself cannot be
/// sent; this can. Does not keep the broker alive, but what was made with it does, until it is called or dropped.
struct WayBack<Desk: AnyObject>: Sendable {
    unowned let broker: Broker
    let clock: any BrokerClock
    let desk: @Sendable (isolated Broker) -> Desk

    /// Runs `action` in a later turn.
    func post(_ action: @escaping @Sendable (Desk) -> Void) {
        broker.loop.post { [broker, desk] in broker.assumeIsolated { action(desk($0)) } }
    }

    func callback(_ action: @escaping @Sendable (Desk) -> Void) -> @Sendable () -> Void {
        { [broker, desk] in broker.loop.post { broker.assumeIsolated { action(desk($0)) } } }
    }

    /// A function for a port to call from any thread; `action` runs in a later turn.
    func callback<Value: Sendable>(_ action: @escaping @Sendable (Desk, Value) -> Void) -> @Sendable (Value) -> Void {
        { [broker, desk] value in broker.loop.post { broker.assumeIsolated { action(desk($0), value) } } }
    }

    /// A function to call on the broker's executor; `action` runs at once.
    func direct<Value: Sendable>(_ action: @escaping @Sendable (Desk, Value) -> Void) -> @Sendable (Value) -> Void {
        { [broker, desk] value in broker.assumeIsolated { action(desk($0), value) } }
    }

    /// As `callback`, for a port that keeps the function for good, but does nothing once the broker is gone.
    func observer<Value: Sendable>(_ action: @escaping @Sendable (Desk, Value) -> Void) -> @Sendable (Value) -> Void {
        { [weak broker, desk] value in
            guard let broker else { return }
            broker.loop.post { broker.assumeIsolated { action(desk($0), value) } }
        }
    }

    /// Runs `action` after `duration`, unless the timer is dropped before.
    func after(_ duration: Duration, _ action: @escaping @Sendable (Desk) -> Void) -> DeadlineTimer {
        DeadlineTimer(after: duration, clock) { [broker, desk] in broker.assumeIsolated { action(desk($0)) } }
    }

    /// The same, with nothing that could be dropped.
    func eventually(after duration: Duration, _ action: @escaping @Sendable (Desk) -> Void) {
        _ = clock.schedule(after: duration) { [broker, desk] in broker.assumeIsolated { action(desk($0)) } }
    }
}

/// Does something once, after a while, unless it is cancelled or dropped before.
final class DeadlineTimer {
    private let action: any ScheduledAction

    init(after duration: Duration, _ clock: any BrokerClock, _ action: @escaping @Sendable () -> Void) {
        self.action = clock.schedule(after: duration, action)
    }

    deinit { action.cancel() }

    func cancel() { action.cancel() }
}

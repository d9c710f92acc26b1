/// Calls a desk on the broker's executor, later or from another thread. A desk is not `Sendable`; this value is. It
/// does not retain the broker. The functions made from it do, except for `observer`.
struct DeskReference<Desk: AnyObject>: Sendable {
    unowned let broker: Broker
    let clock: any BrokerClock
    let desk: @Sendable (isolated Broker) -> Desk

    /// Runs `action` in a later turn of the loop.
    func post(_ action: @escaping @Sendable (Desk) -> Void) {
        broker.loop.post { [broker, desk] in broker.assumeIsolated { action(desk($0)) } }
    }

    /// Returns a function that may be called on any thread; `action` runs in a later turn.
    func callback<Value: Sendable>(_ action: @escaping @Sendable (Desk, Value) -> Void) -> @Sendable (Value) -> Void {
        { [broker, desk] value in broker.loop.post { broker.assumeIsolated { action(desk($0), value) } } }
    }

    /// Returns a function to be called on the broker's executor; `action` runs at once.
    func direct<Value: Sendable>(_ action: @escaping @Sendable (Desk, Value) -> Void) -> @Sendable (Value) -> Void {
        { [broker, desk] value in broker.assumeIsolated { action(desk($0), value) } }
    }

    /// Like `callback`, but for functions that a port stores permanently: the function does not retain the broker, and
    /// has no effect once the broker is deallocated.
    func observer<Value: Sendable>(_ action: @escaping @Sendable (Desk, Value) -> Void) -> @Sendable (Value) -> Void {
        { [weak broker, desk] value in
            guard let broker else { return }
            broker.loop.post { broker.assumeIsolated { action(desk($0), value) } }
        }
    }

    /// Runs `action` after `duration`, unless the timer is cancelled or released before.
    func after(_ duration: Duration, _ action: @escaping @Sendable (Desk) -> Void) -> DeadlineTimer {
        DeadlineTimer(after: duration, clock) { [broker, desk] in broker.assumeIsolated { action(desk($0)) } }
    }

    /// Runs `action` after `duration`. Cannot be cancelled.
    func eventually(after duration: Duration, _ action: @escaping @Sendable (Desk) -> Void) {
        _ = clock.schedule(after: duration) { [broker, desk] in broker.assumeIsolated { action(desk($0)) } }
    }
}

/// A timer that runs an action once, unless it is cancelled or released before.
final class DeadlineTimer {
    private let action: any ScheduledAction

    init(after duration: Duration, _ clock: any BrokerClock, _ action: @escaping @Sendable () -> Void) {
        self.action = clock.schedule(after: duration, action)
    }

    deinit { action.cancel() }

    func cancel() { action.cancel() }
}

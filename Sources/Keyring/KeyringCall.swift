internal import CSecret
internal import Dispatch
internal import Synchronization
internal import WatchwordCore

/// One call on its way: what cancels it, until when it may take, and that it is answered once.
///
/// Whoever has the answer first claims the call: the keyring's thread with a result, the watchdog at the deadline, or the end
/// of the keyring. So a caller gets its answer in time even while the thread still winds up.
final class KeyringCall: Sendable {
    private struct State {
        var deadline: ContinuousClock.Instant
        /// `nil` as soon as somebody has claimed the call.
        var fail: (@Sendable (KeyringFailure) -> Void)?
        var cause: KeyringFailure?
    }

    // `nonisolated(unsafe)`: never changed, and GCancellable may be used on every thread.
    nonisolated(unsafe) let cancellable: UnsafeMutablePointer<GCancellable>
    private let state: Mutex<State>
    private let onCancel: @Sendable () -> Void

    /// - Parameters:
    ///   - limit: the time the call may take from now.
    ///   - onCancel: runs after the call was cancelled, to wake who waits for something else than D-Bus.
    ///   - fail: answers the caller.
    init(
        limit: Duration, onCancel: @escaping @Sendable () -> Void, fail: @escaping @Sendable (KeyringFailure) -> Void
    ) {
        guard let cancellable = g_cancellable_new() else { preconditionFailure("GLib makes no object") }
        self.cancellable = cancellable
        self.onCancel = onCancel
        state = Mutex(State(deadline: .now + limit, fail: fail))
        watch()
    }

    deinit { g_object_unref(cancellable) }

    /// Whether the caller has its answer already, so that no more work should be done.
    var isOver: Bool { state.withLock { $0.fail == nil } }

    /// Why an operation of this call ended as cancelled.
    var cause: KeyringFailure { state.withLock { $0.cause } ?? KeyringFailure(.cancelled, "The call was cancelled.") }

    /// Takes the right to answer. `false` when somebody else has it.
    func claim() -> Bool { take() != nil }

    /// Answers with `failure` unless the call is answered, and stops what is done for it.
    func end(_ failure: KeyringFailure) {
        guard let fail = take(failure) else { return }
        g_cancellable_cancel(cancellable)
        onCancel()
        fail(failure)
    }

    /// Sets a new deadline, `limit` from now: a window comes up, and people need longer than programs.
    func restart(limit: Duration) {
        state.withLock { $0.deadline = .now + limit }
        watch()
    }

    private func take(_ cause: KeyringFailure? = nil) -> (@Sendable (KeyringFailure) -> Void)? {
        state.withLock { state in
            defer { state.fail = nil }
            if state.fail != nil { state.cause = cause }
            return state.fail
        }
    }

    /// Weak, so that a call that has been answered goes at once and not at its deadline.
    private func watch() {
        let rest = state.withLock { ContinuousClock.now.duration(to: $0.deadline) }
        DispatchQueue.global().asyncAfter(deadline: .now() + rest.interval) { [weak self] in self?.expire() }
    }

    private func expire() {
        let (isOver, isEarly) = state.withLock { ($0.fail == nil, $0.deadline > .now) }
        if isOver { return }
        if isEarly { return watch() }
        end(KeyringFailure(.timedOut, "The keyring did not answer in time."))
    }
}

extension Duration {
    fileprivate var interval: DispatchTimeInterval {
        let (seconds, attoseconds) = components
        guard seconds < 1 << 32 else { return .seconds(1 << 32) }
        // Rounded up: a watchdog that comes a nanosecond early would only have to come again.
        return .nanoseconds(Int(max(seconds, 0)) * 1_000_000_000 + Int(max(attoseconds, 0) / 1_000_000_000) + 1)
    }
}

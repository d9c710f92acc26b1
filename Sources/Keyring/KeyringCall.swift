internal import CSecret
internal import Dispatch
internal import Synchronization
internal import WatchwordCore

/// A keyring call with cancellation, a deadline and exactly one completion.
///
/// Three parts of the program may claim the call: the keyring's thread with a result, the watchdog at the deadline, and
/// the shutdown of the keyring. The first one to claim it completes it. The call is therefore completed in time even if
/// the thread is still busy with it.
final class KeyringCall: Sendable {
    private struct State {
        var deadline: ContinuousClock.Instant
        /// The caller's completion for a failure; `nil` after the call was claimed.
        var fail: (@Sendable (KeyringFailure) -> Void)?
        var cause: KeyringFailure?
    }

    // `nonisolated(unsafe)`: set at most once, before the call is over, and with the state locked. Only the keyring's thread
    // and the thread that ended the call read it, and GCancellable is thread-safe.
    nonisolated(unsafe) private(set) var cancellable: UnsafeMutablePointer<GCancellable>?
    private let state: Mutex<State>
    private let onCancel: @Sendable () -> Void

    /// - Parameters:
    ///   - limit: the time that the call may take from now.
    ///   - onCancel: runs after the call was cancelled, to wake a thread that waits for something other than D-Bus.
    ///   - fail: the caller's completion for a failure.
    init(
        limit: Duration, onCancel: @escaping @Sendable () -> Void, fail: @escaping @Sendable (KeyringFailure) -> Void
    ) {
        self.onCancel = onCancel
        state = Mutex(State(deadline: .now + limit, fail: fail))
        watch()
    }

    deinit {
        if let cancellable { g_object_unref(cancellable) }
    }

    /// Makes the call cancellable; GLib must be loaded. Returns `false` if the call is already over. Called on the keyring's
    /// thread only.
    func begin() -> Bool {
        state.withLock { state in
            if state.fail != nil { cancellable = g_cancellable_new() }
            return state.fail != nil
        }
    }

    /// Whether the call was claimed, so that no more work should be done for it.
    var isOver: Bool { state.withLock { $0.fail == nil } }

    /// The failure with which the call was cancelled.
    var cause: KeyringFailure { state.withLock { $0.cause } ?? KeyringFailure(.cancelled, "keyring call cancelled") }

    /// Claims the call, so that the caller of this method has to complete it. Returns `false` if it was claimed before.
    func claim() -> Bool { take() != nil }

    /// Completes the call with `failure` and cancels its work. Does nothing if it was claimed before.
    func end(_ failure: KeyringFailure) {
        guard let fail = take(failure) else { return }
        if let cancellable { g_cancellable_cancel(cancellable) }
        onCancel()
        fail(failure)
    }

    /// Sets a new deadline, `limit` from now, when the keyring shows a window: the user needs more time than a program.
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

    /// Schedules the check of the deadline. The reference is weak, so that a completed call is freed at once.
    private func watch() {
        let rest = state.withLock { ContinuousClock.now.duration(to: $0.deadline) }
        DispatchQueue.global().asyncAfter(deadline: .now() + rest.interval) { [weak self] in self?.expire() }
    }

    private func expire() {
        let (isOver, isEarly) = state.withLock { ($0.fail == nil, $0.deadline > .now) }
        if isOver { return }
        if isEarly { return watch() }
        end(KeyringFailure(.timedOut, "no reply from the keyring in time"))
    }
}

extension Duration {
    fileprivate var interval: DispatchTimeInterval {
        let (seconds, attoseconds) = components
        guard seconds < 1 << 32 else { return .seconds(1 << 32) }
        // Rounds up: a watchdog that runs a nanosecond early would have to run again.
        return .nanoseconds(Int(max(seconds, 0)) * 1_000_000_000 + Int(max(attoseconds, 0) / 1_000_000_000) + 1)
    }
}

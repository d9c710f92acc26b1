internal import Synchronization
internal import WatchwordCore
internal import WatchwordProtocol

/// Schedules calls on the keyring's thread that look for changes by other programs, and reports the changes to the broker.
final class KeyringObserver: Sendable {
    private struct State {
        var report: (@Sendable (KeyringChange) -> Void)?
        var isScheduled = false
    }

    private let state = Mutex(State())
    private let thread: KeyringThread

    init(_ thread: KeyringThread) { self.thread = thread }

    func set(_ report: @escaping @Sendable (KeyringChange) -> Void) { state.withLock { $0.report = report } }

    /// Queues a call that processes the received signals. Does nothing if one is queued already, or if `set` was not called.
    func schedule() {
        let report = state.withLock { state in
            defer { if state.report != nil { state.isScheduled = true } }
            return state.isScheduled ? nil : state.report
        }
        guard let report else { return }
        let call = KeyringCall(
            limit: Limits.keyringCall, onCancel: { [thread] in thread.dropFinishedJobs() },
            fail: { [weak self] _ in self?.unschedule() })
        _ = thread.post(
            KeyringThread.Job(call: call) { worker in
                self.unschedule()
                worker.reportChanges(call, report)
                _ = call.claim()
            })
    }

    private func unschedule() { state.withLock { $0.isScheduled = false } }
}

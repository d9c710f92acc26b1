/// Does something once, after a while, unless it is dropped before.
final class DeadlineTimer {
    private let task: Task<Void, Never>

    init(after duration: Duration, _ clock: any BrokerClock, _ action: @escaping @Sendable () async -> Void) {
        task = Task {
            guard (try? await clock.sleep(for: duration)) != nil, !Task.isCancelled else { return }
            await action()
        }
    }

    deinit { task.cancel() }
}

import Synchronization
import WatchwordCore

/// A disk that is slow: what is kept is written when a test says so.
final class FakeGrants: GrantPort {
    private let waiting = Mutex<[@Sendable () -> Void]>([])

    func standingGrants() -> [StandingGrant] { [] }

    func keep(_ grants: [StandingGrant]) {}

    func whenKept(_ completion: @escaping @Sendable () -> Void) { waiting.withLock { $0.append(completion) } }

    func write() {
        let calls = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for call in calls { call() }
    }
}

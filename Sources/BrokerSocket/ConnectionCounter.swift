internal import Synchronization

/// Counts the open connections, per process and in total. Shared by all sockets of a broker; thread-safe.
public final class ConnectionCounter: Sendable {
    private struct Count {
        var all = 0
        var ofProcess: [Int32: Int] = [:]
    }

    private let count = Mutex(Count())

    public init() {}

    /// Counts one more connection of this process. Returns `false`, without counting it, if a limit is reached.
    func admit(_ pid: Int32, _ limits: ServerLimits) -> Bool {
        count.withLock { count in
            let own = count.ofProcess[pid, default: 0]
            // guard: connections-of-process
            guard count.all < limits.connections && own < limits.connectionsOfProcess else { return false }
            count.all += 1
            count.ofProcess[pid] = own + 1
            return true
        }
    }

    func dismiss(_ pid: Int32) {
        count.withLock { count in
            count.all -= 1
            let own = count.ofProcess[pid, default: 0] - 1
            count.ofProcess[pid] = own > 0 ? own : nil
        }
    }
}

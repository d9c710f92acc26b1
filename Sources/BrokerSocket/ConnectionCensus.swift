internal import Synchronization

/// How many connections there are, of each process and in all; one for all sockets of a broker.
public final class ConnectionCensus: Sendable {
    private struct Count {
        var all = 0
        var ofProcess: [Int32: Int] = [:]
    }

    private let count = Mutex(Count())

    public init() {}

    /// Counts one more of this process; `false` where there is no room for it.
    func admit(_ pid: Int32, _ limits: ServerLimits) -> Bool {
        count.withLock { count in
            let own = count.ofProcess[pid, default: 0]
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

internal import CPlatform
internal import Glibc
internal import Synchronization
public import WatchwordProtocol

/// The limits of the socket server. Sizes are in bytes.
public struct ServerLimits: Sendable {
    /// The maximum number of connections on all sockets. Further connections are closed at once.
    public var connections: Int
    /// The maximum number of connections of one process. By default 7/8 of `connections`, or of the descriptors for
    /// clients if these are fewer, so that a process that leaks connections does not lock out others.
    public var connectionsOfProcess: Int
    /// Above this amount of unsent output, reading from the client pauses, until the amount is below `lowWaterMark`.
    public var highWaterMark: Int
    public var lowWaterMark: Int
    /// A client with more unsent output is disconnected.
    public var outgoingQueue: Int
    /// The maximum size of one read from a client. It is small, so that a client with many messages does not delay
    /// others.
    public var readBytes: Int
    /// The maximum size of one read within a large message.
    public var largeReadBytes: Int
    /// The maximum number of reads of remaining input from a client that has hung up.
    var lastReads = 64
    /// A client with unsent output that reads less than `readerBytes` in this time is disconnected.
    public var readerPause: Duration
    public var readerBytes: Int

    public init(
        connections: Int = 4096, connectionsOfProcess: Int? = nil,
        highWaterMark: Int = 4 << 20, lowWaterMark: Int = 1 << 20,
        outgoingQueue: Int = Limits.outgoingQueueBytes, readBytes: Int = 512, largeReadBytes: Int = 64 << 10,
        readerPause: Duration = Limits.readerPause, readerBytes: Int = Limits.readerBytes
    ) {
        self.connections = connections
        self.connectionsOfProcess = connectionsOfProcess ?? max(min(connections, Descriptors.ofClients) * 7 / 8, 1)
        self.highWaterMark = highWaterMark
        self.lowWaterMark = lowWaterMark
        self.outgoingQueue = outgoingQueue
        self.readBytes = readBytes
        self.largeReadBytes = largeReadBytes
        self.readerPause = readerPause
        self.readerBytes = readerBytes
    }
}

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

/// Decides whether another client may be accepted, from the limit (RLIMIT_NOFILE) and the open descriptors.
struct Descriptors {
    /// The number of descriptors available to client connections: all but the reserve.
    static var ofClients: Int { all.map { $0 - Limits.reservedDescriptors(of: $0) } ?? .max / 8 }

    private static var all: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        return Int(clamping: min(limit.rlim_cur, rlim_t(Int32.max)))
    }

    /// Whether a descriptor outside the reserve is free, and about half of the reserve is free. This is estimated from
    /// the lowest free descriptors, because the kernel always assigns the lowest free number.
    var hasRoom: Bool {
        guard let all = Self.all else { return true }
        let reserved = Limits.reservedDescriptors(of: all)
        let first = Int32(all - reserved)
        guard (0..<first).contains(watchword_lowest_free_descriptor(0)) else { return false }
        // Half of the reserve must be free for further connections to servers, for files and for the keyring.
        return (first..<(first + Int32(reserved) / 2)).contains(watchword_lowest_free_descriptor(first))
    }
}

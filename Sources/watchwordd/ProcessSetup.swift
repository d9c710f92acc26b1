import BrokerSocket
import CPlatform
import CWipingHeap
import Glibc

/// What the process does to itself before it opens anything or starts a library.
enum ProcessSetup {
    /// Descriptors that the daemon may use at most; far above what its connection limit needs.
    private static let descriptorLimit: rlim_t = 65_536

    /// Returns what the service manager has handed over.
    static func apply(keeping readyDescriptor: Int32?) throws -> ServiceManager {
        let error = watchword_harden_process()
        guard error == 0 else {
            throw StartFailure(
                "The process cannot be protected against its neighbours: \(String(cString: strerror(error))).")
        }
        guard watchword_heap_wipes() != 0 else {
            throw StartFailure("Memory is not wiped when it is freed: another allocator was loaded into the process.")
        }
        umask(0o077)
        signal(SIGPIPE, SIG_IGN)
        let sockets = try inheritedSockets()
        closeInheritedDescriptors(except: (sockets?.descriptors ?? []) + (readyDescriptor.map { [$0] } ?? []))
        openStandardDescriptors()
        let manager = ServiceManager(sockets: sockets, isStartedByClient: readyDescriptor != nil)
        EnvironmentCleaning.apply()
        raiseDescriptorLimit()
        // As far as the user may: secrets that are not locked are not remembered.
        watchword_raise_locked_memory_limit()
        return manager
    }

    private static func inheritedSockets() throws -> InheritedSockets? {
        do throws(SocketFailure) {
            return try InheritedSockets(
                environment: { name in getenv(name).map { String(cString: $0) } }, pid: getpid())
        } catch {
            throw StartFailure(error)
        }
    }

    /// After this the process is what it stays. Before any other thread, and nonetheless for all of them.
    static func filterSystemCalls() throws {
        let error = watchword_filter_system_calls()
        guard error == 0 else {
            throw StartFailure(
                "The system calls cannot be filtered, as process.filter-system-calls says: \(String(cString: strerror(error)))."
            )
        }
    }

    /// Whatever else the parent had open is not for the broker, which may live longer than it.
    private static func closeInheritedDescriptors(except kept: [Int32]) {
        for descriptor in kept { _ = watchword_set_close_on_exec(descriptor) }
        let highest = kept.max() ?? 2
        for descriptor in 3..<(highest + 1) where !kept.contains(descriptor) { close(descriptor) }
        _ = watchword_close_from(UInt32(highest + 1))
    }

    /// A program without descriptor 2 would write its log into the first file that it opens.
    private static func openStandardDescriptors() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == 0 ? O_RDONLY : O_WRONLY)
        }
    }

    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = min(limit.rlim_max, max(limit.rlim_cur, descriptorLimit))
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}

import BrokerSocket
import CPlatform
import CWipingHeap
import Glibc

/// Prepares the process before it opens files or calls libraries.
enum ProcessSetup {
    /// The maximum number of descriptors, far above the connection limit.
    private static let descriptorLimit: rlim_t = 65_536

    /// Hardens the process and cleans its environment. Returns the interface to the service manager, which is created
    /// from the environment before it is cleaned.
    static func apply(preserving readyDescriptor: Int32?) throws -> ServiceManager {
        let error = watchword_harden_process()
        guard error == 0 else {
            throw StartFailure(
                "cannot protect the process from other processes: \(String(cString: strerror(error)))")
        }
        guard watchword_heap_wipes() != 0 else {
            throw StartFailure("cannot wipe freed memory: another allocator is loaded; check LD_PRELOAD")
        }
        umask(0o077)
        let sockets = try inheritedSockets()
        closeInheritedDescriptors(except: (sockets?.descriptors ?? []) + (readyDescriptor.map { [$0] } ?? []))
        openStandardDescriptors()
        let manager = ServiceManager(sockets: sockets, isStartedByClient: readyDescriptor != nil)
        EnvironmentCleaning.apply()
        raiseDescriptorLimit()
        // Secrets are stored only in locked memory, so raise its limit as far as allowed.
        watchword_raise_locked_memory_limit()
        return manager
    }

    private static func inheritedSockets() throws -> InheritedSockets? {
        do throws(SocketFailure) {
            return try InheritedSockets(environment: ProcessEnvironment.text, pid: getpid())
        } catch {
            throw StartFailure(error)
        }
    }

    /// Installs the seccomp filter permanently, for all threads. Called before other threads start.
    static func filterSystemCalls() throws {
        let error = watchword_filter_system_calls()
        guard error == 0 else {
            throw StartFailure(
                "cannot filter system calls (process.filter-system-calls): \(String(cString: strerror(error)))"
            )
        }
    }

    /// Closes all other descriptors inherited from the parent process. Otherwise they would stay open for the lifetime of
    /// the broker.
    private static func closeInheritedDescriptors(except preserved: [Int32]) {
        for descriptor in preserved { _ = watchword_set_close_on_exec(descriptor) }
        let highest = preserved.max() ?? 2
        for descriptor in 3..<(highest + 1) where !preserved.contains(descriptor) { close(descriptor) }
        _ = watchword_close_from(UInt32(highest + 1))
    }

    /// Opens missing standard descriptors, because the next file opened would otherwise get their number, and the log
    /// would be written to it.
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

/// Removes all environment variables that the broker does not need. libcurl, OpenSSL, GSS-API and GLib read proxies,
/// key log files, trace files and module paths from the environment. With these, the process that starts the broker
/// could control it or read its secrets.
enum EnvironmentCleaning {
    private static let allowed: Set<String> = [
        "HOME", "USER", "LOGNAME", "PATH", "LANG", "LANGUAGE", "TZ", "DBUS_SESSION_BUS_ADDRESS", "KRB5CCNAME",
        "KRB5_CONFIG",
    ]
    private static let allowedPrefixes = ["LC_", "XDG_", "WATCHWORD_"]

    static func isAllowed(_ name: String) -> Bool {
        allowed.contains(name) || allowedPrefixes.contains { name.hasPrefix($0) }
    }

    /// To be called before there are other threads.
    static func apply() {
        for name in names() where !isAllowed(name) { unsetenv(name) }
        // GLib before 2.76 has an allocator of its own, which deadlocks if it gets no memory while GLib is loaded, and holds
        // the dynamic linker's lock meanwhile. With malloc(3) the process exits instead, and freed blocks are wiped.
        setenv("G_SLICE", "always-malloc", 1)
    }

    private static func names() -> [String] {
        var names: [String] = []
        var entry = environ
        while let text = entry.pointee {
            names.append(String(String(cString: text).prefix { $0 != "=" }))
            entry += 1
        }
        return names
    }
}

/// The environment of this process.
enum ProcessEnvironment {
    static func text(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}

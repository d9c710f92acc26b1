internal import CPlatform
internal import Glibc
public import WatchwordProtocol

/// Starts the broker if none is running.
public enum BrokerLauncher {
    /// The time limit for a broker to start listening; it usually takes about ten milliseconds.
    private static let startMilliseconds: Int32 = 10_000
    /// The daemon's exit code if a broker is already running.
    private static let alreadyRunning: Int32 = 3

    /// Connects to the broker at `location`. With `mayStart`, starts one if none is running.
    public static func connect(_ location: SocketLocation, mayStart: Bool) throws(ClientFailure) -> BrokerConnection {
        do throws(ClientFailure) { return try BrokerConnection(location) } catch {
            guard case .notRunning = error, mayStart else { throw error }
        }
        try start(location)
        return try BrokerConnection(location)
    }

    /// Replaces this process with `watchwordd` and its `arguments` (exec(3)). Returns only if `watchwordd` cannot be executed.
    public static func become(_ arguments: [String]) {
        let pointers = (["watchwordd"] + arguments).map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        if let beside = pathBesideThisProgram() { execv(beside, pointers) }
        execvp("watchwordd", pointers)
    }

    private static func start(_ location: SocketLocation) throws(ClientFailure) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .cannotStart(reason: String(cString: strerror(errno))) }
        defer { close(ends[0]) }
        let child = spawn(location, readyDescriptor: ends[1], unused: ends[0])
        close(ends[1])
        guard child > 0 else { throw .cannotStart(reason: "watchwordd not found beside this program or in PATH") }
        var entry = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, startMilliseconds) > 0 else {
            throw .cannotStart(reason: "it was not ready after \(startMilliseconds / 1000) seconds")
        }
        // The daemon writes "ready" or the reason of its failure at once.
        var text = [UInt8](repeating: 0, count: 4096)
        let count = max(0, read(ends[0], &text, text.count))
        let lines = text[..<count].split(separator: UInt8(ascii: "\n"))
        let outcome = lines.map { String(decoding: $0, as: UTF8.self) }
            .reduce("") { $0.isEmpty ? $1 : $0 + ($0.hasSuffix(":") ? " " : "; ") + $1 }
        if outcome == "ready" { return }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 && errno == EINTR {}
        // The macros of wait(2) are not imported: the low seven bits are the signal, the next byte the exit status.
        let (signal, code) = (status & 0x7F, (status >> 8) & 0xFF)
        // Another program has started a broker meanwhile.
        if signal == 0, code == alreadyRunning { return }
        if !outcome.isEmpty { throw .cannotStart(reason: outcome.shortened(to: 500)) }
        let end = signal == 0 ? "it exited with code \(code)" : "it was ended by signal \(signal)"
        throw .cannotStart(reason: "\(end); run watchwordd in a terminal to see why")
    }

    /// Starts the daemon in a new session, so that it outlives the terminal. Returns its process id, or -1.
    private static func spawn(_ location: SocketLocation, readyDescriptor: Int32, unused: Int32) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor: Int32 in 0...2 {
            posix_spawn_file_actions_addopen(
                &actions, descriptor, "/dev/null", descriptor == 0 ? O_RDONLY : O_WRONLY, 0)
        }
        posix_spawn_file_actions_addclose(&actions, unused)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(WATCHWORD_SPAWN_NEW_SESSION) | Int16(POSIX_SPAWN_SETSIGMASK))
        let arguments = ["watchwordd", "--socket", location.path, "--ready-fd", "\(readyDescriptor)"]
        var pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var child: pid_t = 0
        if let beside = pathBesideThisProgram(),
            posix_spawn(&child, beside, &actions, &attributes, &pointers, environ) == 0
        {
            return child
        }
        return posix_spawnp(&child, "watchwordd", &actions, &attributes, &pointers, environ) == 0 ? child : -1
    }

    private static func pathBesideThisProgram() -> String? {
        var path = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = path.withUnsafeMutableBytes { readlink("/proc/self/exe", $0.baseAddress!, $0.count) }
        guard count > 0, let slash = path[..<count].lastIndex(of: UInt8(ascii: "/")) else { return nil }
        let candidate = String(decoding: path[..<slash], as: UTF8.self) + "/watchwordd"
        return access(candidate, X_OK) == 0 ? candidate : nil
    }
}

internal import CPlatform
internal import Glibc
public import WatchwordProtocol

/// Starts the broker for a program that finds none.
public enum BrokerLauncher {
    /// How long a broker may take until it listens; it usually takes some ten milliseconds.
    private static let startMilliseconds: Int32 = 10_000
    /// The daemon's exit code when another one is running already.
    private static let alreadyRunning: Int32 = 3

    /// A connection to the broker at `location`; with `mayStart`, to one that was started for it.
    public static func connect(_ location: SocketLocation, mayStart: Bool) throws(ClientFailure) -> BrokerConnection {
        do throws(ClientFailure) { return try BrokerConnection(location) } catch {
            guard case .notRunning = error, mayStart else { throw error }
        }
        try start(location)
        return try BrokerConnection(location)
    }

    /// Turns this program into `watchwordd` with `arguments`. Returns only when there is none.
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
        guard child > 0 else { throw .cannotStart(reason: "watchwordd was not found beside this program or in PATH.") }
        var entry = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, startMilliseconds) > 0 else {
            throw .cannotStart(reason: "it was not ready after \(startMilliseconds / 1000) seconds.")
        }
        var byte: UInt8 = 0
        if read(ends[0], &byte, 1) == 1 { return }
        var status: Int32 = 0
        waitpid(child, &status, 0)
        let code = (status >> 8) & 0xFF
        // Somebody else was faster: theirs is as good.
        if code == alreadyRunning { return }
        throw .cannotStart(reason: "it ended with code \(code). Run watchwordd in a terminal to see why.")
    }

    /// A process of its own session, so that it outlives the terminal. Returns its id, or what is not positive.
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

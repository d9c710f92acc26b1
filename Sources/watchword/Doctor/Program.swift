import Glibc
import WatchwordClient
import WatchwordProtocol

/// Runs other programs for their exit status and output.
enum Program {
    private static let pauseMicroseconds: UInt32 = 5000
    private static let longestOutput = 4096

    /// Searches the directory of this program, then `$PATH`.
    static func find(_ name: String) -> String? {
        let own = SmallFile.target(of: "/proc/self/exe").map { String($0[..<($0.lastIndex(of: "/") ?? $0.startIndex)]) }
        let folders = [own].compactMap(\.self) + (Environment.text("PATH") ?? "").split(separator: ":").map(String.init)
        return folders.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }

    /// Runs a program. Returns its exit status (negative if it was killed or did not start), and the lines of both outputs.
    /// - Parameter limit: the time after which the program is killed. None of the programs waits for input.
    static func run(
        _ path: String, _ arguments: [String], limit: Duration = .seconds(5)
    ) -> (status: Int32, lines: [String]) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return (-1, ["no file descriptor available"]) }
        defer { close(ends[0]) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
        var pointers = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var child: pid_t = 0
        let problem = posix_spawn(&child, path, &actions, nil, &pointers, environ)
        close(ends[1])
        guard problem == 0 else { return (-1, [String(cString: strerror(problem))]) }
        let end = ContinuousClock.now + limit
        let (output, isDone) = readAll(ends[0], until: end)
        let status = isDone ? self.end(of: child, until: end) : nil
        if let status { return status & 0x7F == 0 ? ((status >> 8) & 0xFF, output) : (-1, output) }
        kill(child, SIGKILL)
        while waitpid(child, nil, 0) < 0 && errno == EINTR {}
        return (-1, output)
    }

    /// Waits until the program exits. Returns `nil` after the time limit: a program may close its outputs without exiting.
    private static func end(of child: pid_t, until end: ContinuousClock.Instant) -> Int32? {
        var status: Int32 = 0
        while waitpid(child, &status, WNOHANG) == 0 {
            guard .now < end else { return nil }
            usleep(pauseMicroseconds)
        }
        return status
    }

    private static func readAll(_ descriptor: Int32, until end: ContinuousClock.Instant) -> ([String], isDone: Bool) {
        var bytes: [UInt8] = []
        while true {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let left = Int32(clamping: (end - .now).wholeMilliseconds)
            guard left > 0 else { return (text(bytes), false) }
            let count = poll(&entry, 1, left)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return (text(bytes), false) }
            var block = [UInt8](repeating: 0, count: 1024)
            let received = read(descriptor, &block, block.count)
            guard received > 0 else { return (text(bytes), true) }
            if bytes.count < longestOutput { bytes += block[..<received] }
        }
    }

    private static func text(_ bytes: [UInt8]) -> [String] {
        String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
    }
}

/// Reads small files.
enum SmallFile {
    private static let longest = 4 << 20

    static func bytes(of path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < longest {
            let count = read(file, &block, block.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { break }
            bytes += block[..<count]
        }
        return bytes
    }

    static func text(of path: String) -> String? { bytes(of: path).map { String(decoding: $0, as: UTF8.self) } }

    static func count(of line: String, in path: String) -> Int? {
        text(of: path)?.split(separator: "\n").count { $0 == line }
    }

    static func target(of link: String) -> String? {
        var path = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = path.withUnsafeMutableBytes { readlink(link, $0.baseAddress!, $0.count) }
        return count > 0 ? String(decoding: path[..<count], as: UTF8.self) : nil
    }
}

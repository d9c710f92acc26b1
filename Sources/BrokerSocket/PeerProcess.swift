internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

/// The process at the other end of a connection, identified through proc(5).
///
/// All files are read through one descriptor of `/proc/PID`, which never refers to a later process with the same PID.
/// The result is valid only if the process is still running after the last read.
struct PeerProcess: Sendable {
    let pid: Int32
    /// The start time in clock ticks since boot, which distinguishes processes with the same PID; `nil` if the process
    /// had ended or could not be identified.
    private let start: String?

    /// Identifies the peer of a new connection.
    static func accept(socket: Int32, pid: Int32) -> (process: PeerProcess, subject: Subject, executable: String?) {
        let descriptor = watchword_peer_process(socket, pid)
        defer { if descriptor >= 0 { close(descriptor) } }
        let folder = descriptor >= 0 ? ProcessFolder(pid) : nil
        var facts = folder?.facts() ?? SubjectFacts()
        facts.label = label(of: socket)
        let start = folder?.startTime()
        facts.isCertain = start != nil && watchword_is_running(descriptor) != 0
        let process = PeerProcess(pid: pid, start: facts.isCertain ? start : nil)
        return (process, facts.subject, facts.program?.path)
    }

    /// Returns the peer's current subject; the process may have called exec since it connected. A security label
    /// belongs to the socket and does not change.
    func currentSubject(after first: Subject) -> Subject {
        if first.kind == .snap || first.kind == .apparmor { return first }
        guard let start, let folder = ProcessFolder(pid), folder.startTime() == start else { return .unknown }
        var facts = folder.facts()
        facts.label = .absent
        facts.isCertain = folder.startTime() == start
        return facts.subject
    }

    func executableNow() -> String? {
        guard let start, let folder = ProcessFolder(pid), folder.startTime() == start else { return nil }
        let path = folder.facts().program?.path
        return folder.startTime() == start ? path : nil
    }

    /// Whether the peer runs the file that the broker finds at `path`. In another mount namespace, a different file may
    /// have this path.
    func runsFile(_ path: String) -> Bool {
        guard let start, let folder = ProcessFolder(pid), folder.startTime() == start else { return false }
        let isSame = folder.runsFile(path)
        return isSame && folder.startTime() == start
    }

    private static func label(of socket: Int32) -> SubjectFacts.Label {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            let count = Int(watchword_peer_label(socket, buffer.baseAddress, buffer.count))
            guard count >= 0 else {
                return [ENOPROTOOPT, EINVAL, ENODATA].contains(errno) ? .absent : .unreadable
            }
            let bytes = buffer[..<min(count, buffer.count)].prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            if bytes.isEmpty { return .absent }
            return String(validating: bytes, as: UTF8.self).map { .text($0) } ?? .unreadable
        }
    }
}

/// An open `/proc/PID`.
private struct ProcessFolder: ~Copyable {
    private let descriptor: Int32

    init?(_ pid: Int32) {
        descriptor = open("/proc/\(pid)", Int32(WATCHWORD_OPEN_AS_PATH) | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    func facts() -> SubjectFacts {
        var facts = SubjectFacts()
        facts.flatpak = flatpakInfo()
        facts.cgroup = text(of: "cgroup")
        facts.program = program()
        return facts
    }

    /// Returns field 22 (starttime) of `/proc/PID/stat` (proc(5)); `nil` for a zombie. Fields are counted from the end
    /// of the program name, which may contain any character.
    func startTime() -> String? {
        guard let line = text(of: "stat"), let end = line.lastIndex(of: ")") else { return nil }
        let fields = line[line.index(after: end)...].split(separator: " ")
        return fields.count > 19 && fields[0] != "Z" && fields[0] != "X" ? String(fields[19]) : nil
    }

    /// Reads `/.flatpak-info` in the root of the process, unless the process has the same mount namespace and root as
    /// the broker. The file is not read from a remote or FUSE file system: the client could be its server and block the
    /// broker.
    private func flatpakInfo() -> SubjectFacts.FlatpakInfo {
        if let own = Self.link("/proc/self/ns/mnt"), link("ns/mnt") == own, link("root") == "/" { return .absent }
        let root = openat(descriptor, "root", Int32(WATCHWORD_OPEN_AS_PATH) | O_DIRECTORY | O_CLOEXEC)
        guard root >= 0 else { return .unreadable }
        defer { close(root) }
        guard isOnLocalFileSystem(root) else { return .unreadable }
        let file = openat(root, ".flatpak-info", O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC)
        guard file >= 0 else { return errno == ENOENT ? .absent : .unreadable }
        defer { close(file) }
        return Self.text(of: file).map { .text($0) } ?? .unreadable
    }

    private func program() -> SubjectFacts.Program? {
        guard var path = link("exe") else { return nil }
        let file = openat(descriptor, "exe", Int32(WATCHWORD_OPEN_AS_PATH) | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard isOnLocalFileSystem(file), fstat(file, &status) == 0 else { return nil }
        let isThere = status.st_nlink > 0
        let suffix = " (deleted)"
        if !isThere, path.hasSuffix(suffix) { path.removeLast(suffix.count) }
        let changed = Int64(status.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_ctim.tv_nsec)
        return SubjectFacts.Program(
            path: path, file: Subject.File(inode: UInt64(status.st_ino), changed: changed),
            isSystemFile: isThere && status.st_uid == 0 && status.st_mode & 0o022 == 0)
    }

    func runsFile(_ path: String) -> Bool {
        let file = openat(descriptor, "exe", Int32(WATCHWORD_OPEN_AS_PATH) | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var (run, seen) = (stat(), stat())
        guard isOnLocalFileSystem(file), fstat(file, &run) == 0, stat(path, &seen) == 0 else { return false }
        return run.st_dev == seen.st_dev && run.st_ino == seen.st_ino
    }

    /// Whether the file is on a file system whose reads do not wait for a server, according to the mounts of the
    /// process.
    private func isOnLocalFileSystem(_ file: Int32) -> Bool {
        guard let info = Self.text(at: "/proc/self/fdinfo/\(file)"), let mounts = text(of: "mountinfo") else {
            return false
        }
        let number = info.split(separator: "\n").first { $0.hasPrefix("mnt_id:") }?.dropFirst("mnt_id:".count)
        guard let id = number?.trimmingPrefix(while: \.isWhitespace) else { return false }
        let line = mounts.split(separator: "\n").first { $0.hasPrefix("\(id) ") }
        guard let type = line?.split(separator: " ").drop(while: { $0 != "-" }).dropFirst().first else { return false }
        let isWaitedFor =
            type.hasPrefix("fuse") || type.hasPrefix("nfs")
            || ["cifs", "smb3", "9p", "ceph", "afs", "coda"].contains(type)
        return !isWaitedFor
    }

    private func link(_ name: String) -> String? { Self.link(name, in: descriptor) }

    private static func link(_ name: String, in folder: Int32 = AT_FDCWD) -> String? {
        let capacity = Int(PATH_MAX)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer -> String? in
            let count = readlinkat(folder, name, buffer.baseAddress!, capacity)
            guard count > 0, count < capacity else { return nil }
            return String(validating: buffer[..<count].lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    private static func text(at path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return text(of: file, isRegular: false)
    }

    private func text(of name: String) -> String? {
        let file = openat(descriptor, name, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return Self.text(of: file, isRegular: false)
    }

    /// Returns the contents of a file up to 1 MiB; `nil` if it is larger or not UTF-8.
    private static func text(of file: Int32, isRegular: Bool = true) -> String? {
        if isRegular {
            var status = stat()
            guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        }
        let longest = 1 << 20
        var bytes: [UInt8] = []
        while bytes.count <= longest {
            var block = [UInt8](repeating: 0, count: 4096)
            let count = read(file, &block, block.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return String(validating: bytes, as: UTF8.self) }
            bytes += block[..<count]
        }
        return nil
    }
}

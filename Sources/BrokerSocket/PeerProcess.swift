internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

/// The process at the other end of a connection: reads what the kernel says of it (proc(5)).
///
/// Everything is read through one descriptor of `/proc/PID`, which never stands for a later process of that number, and counts
/// only if the process lives when all is read.
struct PeerProcess: Sendable {
    let pid: Int32
    /// In clock ticks since the machine started: tells two processes of one number apart. `nil` when it was gone already.
    private let start: String?

    /// What was found out when the connection came, and who that is.
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

    /// Who it is now: a process may run another program than the one that connected. A label is the socket's, and stays.
    func subjectNow(after first: Subject) -> Subject {
        if first.kind == .snap || first.kind == .apparmor { return first }
        guard let start, let folder = ProcessFolder(pid), folder.startTime() == start else { return .unknown }
        var facts = folder.facts()
        facts.isCertain = folder.startTime() == start
        return facts.subject
    }

    private static func label(of socket: Int32) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1024) { buffer -> String? in
            let count = Int(watchword_peer_label(socket, buffer.baseAddress, buffer.count))
            guard count > 0, count <= buffer.count else { return nil }
            let bytes = buffer[..<count].prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            return String(validating: bytes, as: UTF8.self)
        }
    }
}

/// `/proc/PID`, held open.
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

    /// Behind the program's name, which may hold anything: the 22nd field (proc(5), /proc/pid/stat).
    func startTime() -> String? {
        guard let line = text(of: "stat"), let end = line.lastIndex(of: ")") else { return nil }
        let fields = line[line.index(after: end)...].split(separator: " ")
        return fields.count > 19 && fields[0] != "Z" && fields[0] != "X" ? String(fields[19]) : nil
    }

    private func flatpakInfo() -> SubjectFacts.FlatpakInfo {
        let root = openat(descriptor, "root", Int32(WATCHWORD_OPEN_AS_PATH) | O_DIRECTORY | O_CLOEXEC)
        guard root >= 0 else { return .unreadable }
        defer { close(root) }
        let file = openat(root, ".flatpak-info", O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC)
        guard file >= 0 else { return errno == ENOENT ? .absent : .unreadable }
        defer { close(file) }
        return Self.text(of: file).map { .text($0) } ?? .unreadable
    }

    private func program() -> SubjectFacts.Program? {
        let capacity = Int(PATH_MAX)
        let path = withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer -> String? in
            let count = readlinkat(descriptor, "exe", buffer.baseAddress!, capacity)
            guard count > 0, count < capacity else { return nil }
            return String(validating: buffer[..<count].lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        var status = stat()
        guard let path, fstatat(descriptor, "exe", &status, 0) == 0 else { return nil }
        let isOfSystem = status.st_uid == 0 && status.st_mode & 0o022 == 0
        return SubjectFacts.Program(
            path: path, file: Subject.File(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)),
            isOfSystem: isOfSystem)
    }

    private func text(of name: String) -> String? {
        let file = openat(descriptor, name, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return Self.text(of: file, isRegular: false)
    }

    /// All of a small file.
    private static func text(of file: Int32, isRegular: Bool = true) -> String? {
        if isRegular {
            var status = stat()
            guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        }
        let longest = 64 << 10
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

internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

/// An open `/proc/PID`.
struct ProcessFolder: ~Copyable {
    let descriptor: Int32

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
        facts.script = facts.program.flatMap { script(of: $0.path) }
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
        let place = openat(root, ".flatpak-info", Int32(WATCHWORD_OPEN_AS_PATH) | O_NOFOLLOW | O_CLOEXEC)
        guard place >= 0 else { return errno == ENOENT ? .absent : .unreadable }
        defer { close(place) }
        // The file can be the root of another file system.
        guard isOnLocalFileSystem(place) else { return .unreadable }
        let file = open("/proc/self/fd/\(place)", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard file >= 0 else { return .unreadable }
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
        return SubjectFacts.Program(
            path: path, file: status.identity, isSystemFile: isThere && status.isSystemFile)
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
    /// - Parameter mounts: the `mountinfo` of the process, if it was read already.
    func isOnLocalFileSystem(_ file: Int32, mounts: String? = nil) -> Bool {
        guard let info = Self.text(at: "/proc/self/fdinfo/\(file)"), let mounts = mounts ?? text(of: "mountinfo") else {
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

    func link(_ name: String) -> String? { Self.link(name, in: descriptor) }

    static func link(_ name: String, in folder: Int32 = AT_FDCWD) -> String? {
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

    func text(of name: String) -> String? {
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

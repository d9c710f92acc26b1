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
        facts.label = label()
        facts.cgroup = text(of: "cgroup")
        facts.program = program()
        facts.script = facts.program.flatMap { script(of: $0.path) }
        return facts
    }

    /// Returns field 22 (starttime) of `/proc/PID/stat` (proc(5)); `nil` for a zombie.
    func startTime() -> String? {
        guard let fields = status(), fields.count > 19, let state = fields.first, state != "Z", state != "X" else {
            return nil
        }
        return fields[19]
    }

    /// Returns the process that has started this one, or has adopted it; `nil` if it cannot be read.
    func parent() -> Int32? { status().flatMap { $0.count > 1 ? Int32($0[1]) : nil } }

    /// Returns the fields of `/proc/PID/stat` from the third one, the state. They are counted from the end of the program name,
    /// which may contain any character.
    private func status() -> [String]? {
        guard let line = bytes(of: "stat"), let end = line.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        return line[(end + 1)...].split(separator: UInt8(ascii: " ")).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the label of the process from the Linux security module, which every process can read.
    private func label() -> SubjectFacts.Label {
        SubjectFacts.Label { watchword_process_label(descriptor, $0, $1) }
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
        return Self.bytes(of: file, isRegular: true)
            .flatMap { String(validating: $0, as: UTF8.self) }.map { .text($0) } ?? .unreadable
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
    /// - Parameter mounts: the mounts of the process, if they were read already.
    func isOnLocalFileSystem(_ file: Int32, mounts: MountTable? = nil) -> Bool {
        guard let info = Self.bytes(at: "/proc/self/fdinfo/\(file)"), let mounts = mounts ?? self.mounts else {
            return false
        }
        let name = "mnt_id:"
        guard let line = info.lines.first(where: { $0.starts(with: name.utf8) }) else { return false }
        return mounts.isLocal(line.dropFirst(name.utf8.count).drop { $0 == 0x09 || $0 == 0x20 })
    }

    /// The mounts of the process; `nil` if it has ended.
    var mounts: MountTable? { bytes(of: "mountinfo").map { MountTable($0) } }

    func link(_ name: String) -> String? { Self.link(name, in: descriptor) }

    static func link(_ name: String, in folder: Int32 = AT_FDCWD) -> String? {
        let capacity = Int(PATH_MAX)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer -> String? in
            let count = readlinkat(folder, name, buffer.baseAddress!, capacity)
            guard count > 0, count < capacity else { return nil }
            return String(validating: buffer[..<count].lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    private static func bytes(at path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return bytes(of: file, isRegular: false)
    }

    private func bytes(of name: String) -> [UInt8]? {
        let file = openat(descriptor, name, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return Self.bytes(of: file, isRegular: false)
    }

    /// Returns a text of the process; `nil` if it is not UTF-8.
    func text(of name: String) -> String? { bytes(of: name).flatMap { String(validating: $0, as: UTF8.self) } }

    /// Returns the contents of a file up to 1 MiB; `nil` if it is larger.
    private static func bytes(of file: Int32, isRegular: Bool) -> [UInt8]? {
        if isRegular {
            var status = stat()
            guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        }
        let longest = 1 << 20
        var bytes: [UInt8] = []
        while bytes.count <= longest {
            let (before, room) = (bytes.count, max(4096, bytes.count))
            var count = 0
            bytes.append(
                contentsOf: [UInt8](unsafeUninitializedCapacity: room) { block, taken in
                    count = read(file, block.baseAddress, room)
                    taken = max(count, 0)
                })
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if bytes.count == before { return bytes }
        }
        return nil
    }
}

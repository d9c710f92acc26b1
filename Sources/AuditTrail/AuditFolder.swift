internal import Glibc
internal import WatchwordProtocol

/// The files of the audit log (mode 0600) in their directory (mode 0700). The directory and the files must belong to
/// this user. Symbolic links are not followed.
///
/// Each line is one write(2) with O_APPEND, so that lines of several brokers do not mix. SIGKILL can truncate a line,
/// because Linux checks for it after each page; the next writer then starts a new line. Files are not synced to the
/// disk: a line survives a crash of the broker, but possibly not of the machine.
struct AuditFolder: AuditStorage {
    /// An open file, which `deinit` closes.
    private final class File: Sendable {
        let descriptor: Int32

        init(_ descriptor: Int32) { self.descriptor = descriptor }

        deinit { if descriptor >= 0 { close(descriptor) } }
    }

    private let path: String
    private var folder: File?
    private var file: File?
    /// Whether the last line of the file is truncated, because a broker was killed or the disk was full.
    private var hasIncompleteLastLine = false
    /// The size of the file after the last write of this broker. If the size has changed since then, another broker has
    /// written to the file.
    private var end = 0

    init(path: String) { self.path = path }

    mutating func append(_ line: [UInt8], _ limits: AuditLimits) throws(AuditFailure) {
        do throws(AuditFailure) {
            var (file, size) = try current()
            if size > 0, size + line.count > limits.fileBytes, try rotate(file, limits) { (file, size) = try current() }
            let bytes = hasIncompleteLastLine ? [UInt8(ascii: "\n")] + line : line
            try write(bytes, to: file)
            end = size + bytes.count
        } catch {
            // The next call opens the directory and the file again.
            (file, folder) = (nil, nil)
            throw error
        }
    }

    /// Returns the current log file and its size. Opens the file again if it was moved or removed.
    private mutating func current() throws(AuditFailure) -> (File, size: Int) {
        let name = StateLocation.auditFile()
        if let file, let folder {
            let (mine, named) = (status(file.descriptor), status(name, in: folder))
            if let mine, let named, mine.st_ino == named.st_ino, mine.st_dev == named.st_dev {
                // guard: a-cut-line-of-another-broker-is-ended
                if mine.st_size != end { hasIncompleteLastLine = lacksEnd(file.descriptor, size: mine.st_size) }
                return (file, Int(mine.st_size))
            }
        }
        file = nil
        let folder = try openFolder()
        let (status, opened) = try open(name, O_RDWR | O_APPEND | O_CREAT, in: folder)
        let descriptor = opened.descriptor
        if status.st_mode & 0o077 != 0, fchmod(descriptor, 0o600) != 0 {
            throw failure("\(path)/\(name)", "remove the access of others to", errno)
        }
        hasIncompleteLastLine = lacksEnd(descriptor, size: status.st_size)
        file = opened
        return (opened, Int(status.st_size))
    }

    /// Opens a file of this user.
    private func open(_ name: String, _ flags: Int32, in folder: File) throws(AuditFailure) -> (stat, File) {
        let file: CarefulFile
        do throws(CarefulFile.Failure) { file = try CarefulFile(name, in: folder.descriptor, flags) } catch {
            throw AuditFailure("\(path)/\(name) \(error.text)")
        }
        let status = file.status
        guard status.st_uid == geteuid() else { throw AuditFailure("\(path)/\(name) is not yours; move it away") }
        return (status, File(file.release()))
    }

    private mutating func openFolder() throws(AuditFailure) -> File {
        var made = ""
        for part in path.split(separator: "/") {
            made += "/\(part)"
            // In case the umask has removed permissions of the user.
            if mkdir(made, 0o700) == 0 { _ = chmod(made, 0o700) }
        }
        let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw failure(path, "open", errno) }
        let opened = File(descriptor)
        guard let status = status(descriptor), status.st_uid == geteuid() else {
            throw AuditFailure("\(path) is not a directory of yours; move it away")
        }
        if status.st_mode & 0o077 != 0, fchmod(descriptor, 0o700) != 0 {
            throw failure(path, "remove the access of others to", errno)
        }
        folder = opened
        return opened
    }

    /// Rotates the files, unless another broker has done so.
    /// - Returns: `false` if another broker is rotating the files now; then the line is appended to the current file,
    ///   which may exceed its limit.
    private mutating func rotate(_ current: File, _ limits: AuditLimits) throws(AuditFailure) -> Bool {
        guard let folder, flock(folder.descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
        defer { flock(folder.descriptor, LOCK_UN) }
        // If the file was replaced, another broker has rotated the files already.
        if let named = status(StateLocation.auditFile(), in: folder), let mine = status(current.descriptor),
            named.st_ino == mine.st_ino
        {
            var rotated = 1
            while status(StateLocation.auditFile(rotated), in: folder) != nil { rotated += 1 }
            let isFull = rotated > limits.oldFiles
            // Without old files, the current file is reduced.
            if isFull { try reduce(max(limits.oldFiles - 1, 0)..<rotated, limits, in: folder) }
            for number in stride(from: isFull ? limits.oldFiles - 2 : rotated - 1, through: 0, by: -1) {
                try rename(StateLocation.auditFile(number), to: StateLocation.auditFile(number + 1), in: folder)
            }
        }
        file = nil
        return true
    }

    /// Replaces the oldest files by one, the last of the rotated files, with the records that have a share in it.
    private func reduce(_ numbers: Range<Int>, _ limits: AuditLimits, in folder: File) throws(AuditFailure) {
        var files: [File] = []
        for number in numbers.reversed() {
            files.append(try open(StateLocation.auditFile(number), O_RDONLY, in: folder).1)
        }
        let new = "audit.new.jsonl"
        unlinkat(folder.descriptor, new, 0)
        let target = try open(new, O_WRONLY | O_CREAT | O_EXCL, in: folder).1
        let budget = limits.oldFiles == 0 ? limits.fileBytes / 2 : limits.fileBytes
        let error = AuditCopy.copy(
            files.map(\.descriptor), to: target.descriptor, budget: budget, keepsNewest: limits.oldFiles > 0)
        // The descriptors are used until here.
        withExtendedLifetime(files) {}
        guard error == 0 else {
            unlinkat(folder.descriptor, new, 0)
            throw failure("\(path)/\(new)", "write to", error)
        }
        try rename(new, to: StateLocation.auditFile(limits.oldFiles), in: folder)
        for number in numbers where number != limits.oldFiles {
            unlinkat(folder.descriptor, StateLocation.auditFile(number), 0)
        }
    }

    private func rename(_ from: String, to: String, in folder: File) throws(AuditFailure) {
        guard renameat(folder.descriptor, from, folder.descriptor, to) == 0 else {
            throw failure("\(path)/\(from)", "rename", errno)
        }
    }

    private mutating func write(_ bytes: [UInt8], to file: File) throws(AuditFailure) {
        let name = StateLocation.auditFile()
        var count = Glibc.write(file.descriptor, bytes, bytes.count)
        while count < 0, errno == EINTR { count = Glibc.write(file.descriptor, bytes, bytes.count) }
        let error = count < 0 ? errno : ENOSPC
        if count > 0 { hasIncompleteLastLine = count < bytes.count }
        guard count == bytes.count else { throw failure("\(path)/\(name)", "write to", error) }
    }

    private func lacksEnd(_ descriptor: Int32, size: off_t) -> Bool {
        var last: UInt8 = 0
        return size > 0 && (pread(descriptor, &last, 1, size - 1) != 1 || last != UInt8(ascii: "\n"))
    }

    private func status(_ descriptor: Int32) -> stat? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status : nil
    }

    private func status(_ name: String, in folder: File) -> stat? {
        var status = stat()
        return fstatat(folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    private func failure(_ path: String, _ what: String, _ error: Int32) -> AuditFailure {
        AuditFailure("cannot \(what) \(path): \(String(cString: strerror(error)))")
    }
}

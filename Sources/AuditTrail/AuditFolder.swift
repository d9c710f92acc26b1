internal import Glibc
internal import WatchwordProtocol

/// The files of the audit log in their folder: 0600 in 0700, of this user, and not what a link leads to.
///
/// Each line is one write(2) to a file that is opened for appending, so that those of several brokers stay whole. SIGKILL may
/// cut the line that is being written: Linux looks for it after each page. Whoever writes next begins a new line behind it. Nothing is forced to the disk: a line survives the end of the broker, not always that of the machine.
struct AuditFolder: AuditStorage {
    /// An open file. `@unchecked Sendable` is not needed: the number never changes, and only `deinit` closes it.
    private final class File: Sendable {
        let descriptor: Int32

        init(_ descriptor: Int32) { self.descriptor = descriptor }

        deinit { close(descriptor) }
    }

    private let path: String
    private var folder: File?
    private var file: File?
    /// The last line of the file has no end: a broker, or the disk's room, came to its own before it.
    private var isTorn = false
    /// Where the last line written here ends. A file that has another size has been written to by another broker.
    private var end = 0

    init(path: String) { self.path = path }

    mutating func append(_ line: [UInt8], _ limits: AuditLimits) throws(AuditFailure) {
        do throws(AuditFailure) {
            var (file, size) = try current()
            if size > 0, size + line.count > limits.fileBytes, try rotate(file, limits) { (file, size) = try current() }
            let bytes = isTorn ? [UInt8(ascii: "\n")] + line : line
            try write(bytes, to: file)
            end = size + bytes.count
        } catch {
            // Whatever it was, it is looked at anew next time.
            (file, folder) = (nil, nil)
            throw error
        }
    }

    /// The file that now has the name, which somebody may have moved or removed since.
    private mutating func current() throws(AuditFailure) -> (File, size: Int) {
        let name = StateLocation.auditFile()
        if let file, let folder {
            let (mine, named) = (status(file.descriptor), status(name, in: folder))
            if let mine, let named, mine.st_ino == named.st_ino, mine.st_dev == named.st_dev {
                if mine.st_size != end { isTorn = lacksEnd(file.descriptor, size: mine.st_size) }
                return (file, Int(mine.st_size))
            }
        }
        file = nil
        let folder = try openFolder()
        let flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let descriptor = openat(folder.descriptor, name, flags, 0o600)
        guard descriptor >= 0 else { throw failure("\(path)/\(name)", "cannot be opened", errno) }
        let opened = File(descriptor)
        guard let status = status(descriptor) else { throw failure("\(path)/\(name)", "cannot be examined", errno) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else {
            throw AuditFailure("\(path)/\(name) is not a file of yours. Move it away.")
        }
        if status.st_mode & 0o077 != 0, fchmod(descriptor, 0o600) != 0 {
            throw failure("\(path)/\(name)", "can be read by others", errno)
        }
        isTorn = lacksEnd(descriptor, size: status.st_size)
        file = opened
        return (opened, Int(status.st_size))
    }

    private mutating func openFolder() throws(AuditFailure) -> File {
        var made = ""
        for part in path.split(separator: "/") {
            made += "/\(part)"
            // Also where a file creation mask forbids the user what it must not.
            if mkdir(made, 0o700) == 0 { _ = chmod(made, 0o700) }
        }
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw failure(path, "cannot be opened", errno) }
        let opened = File(descriptor)
        guard let status = status(descriptor), status.st_uid == geteuid() else {
            throw AuditFailure("\(path) is not a folder of yours. Move it away.")
        }
        if status.st_mode & 0o077 != 0, fchmod(descriptor, 0o700) != 0 {
            throw failure(path, "can be entered by others", errno)
        }
        folder = opened
        return opened
    }

    /// `false` when another broker is at it: then the line goes where it is, and the file becomes a little too large.
    private mutating func rotate(_ current: File, _ limits: AuditLimits) throws(AuditFailure) -> Bool {
        guard let folder, flock(folder.descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
        defer { flock(folder.descriptor, LOCK_UN) }
        // It may have been another one that was quicker.
        if let named = status(StateLocation.auditFile(), in: folder), let mine = status(current.descriptor),
            named.st_ino == mine.st_ino
        {
            if limits.oldFiles == 0 { unlinkat(folder.descriptor, StateLocation.auditFile(), 0) }
            for number in stride(from: limits.oldFiles - 1, through: 0, by: -1) {
                let (from, to) = (StateLocation.auditFile(number), StateLocation.auditFile(number + 1))
                let result = renameat(folder.descriptor, from, folder.descriptor, to)
                guard result == 0 || errno == ENOENT else {
                    throw failure("\(path)/\(from)", "cannot be renamed", errno)
                }
            }
            removeSurplus(after: limits.oldFiles, in: folder)
        }
        file = nil
        return true
    }

    /// What is left of a time with more files.
    private func removeSurplus(after last: Int, in folder: File) {
        var number = last + 1
        while unlinkat(folder.descriptor, StateLocation.auditFile(number), 0) == 0 { number += 1 }
    }

    private mutating func write(_ bytes: [UInt8], to file: File) throws(AuditFailure) {
        let name = StateLocation.auditFile()
        var count = Glibc.write(file.descriptor, bytes, bytes.count)
        while count < 0, errno == EINTR { count = Glibc.write(file.descriptor, bytes, bytes.count) }
        let error = count < 0 ? errno : ENOSPC
        if count > 0 { isTorn = count < bytes.count }
        guard count == bytes.count else { throw failure("\(path)/\(name)", "cannot be written", error) }
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
        AuditFailure("\(path) \(what): \(String(cString: strerror(error)))")
    }
}

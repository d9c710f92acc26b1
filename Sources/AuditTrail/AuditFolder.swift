internal import Glibc
internal import WatchwordProtocol

/// renameat2(2), which the module Glibc leaves out.
@_silgen_name("renameat2")
private func renameat2(
    _ oldFolder: Int32, _ old: UnsafePointer<CChar>, _ newFolder: Int32, _ new: UnsafePointer<CChar>, _ flags: UInt32
) -> Int32

/// The files of the audit log (mode 0600) in their directory (mode 0700). The directory and the files must belong to
/// this user. Symbolic links are not followed.
///
/// Each line is one write(2) with O_APPEND, so that lines of several brokers do not mix. SIGKILL can truncate a line,
/// because Linux checks for it after each page; the next writer then starts a new line. Files are not synced to the
/// disk: a line survives a crash of the broker, but possibly not of the machine.
///
/// A broker appends while it has a shared lock (flock(2)) on the file, and only if the file still has its name. Files are
/// reduced under exclusive locks after the current file has lost its name, so that no line is written to a file after it was
/// read. Nobody waits for a lock: if a broker is appending, the files are reduced later.
struct AuditFolder: AuditStorage {
    /// An open file, which `deinit` closes.
    private final class File: Sendable {
        let descriptor: Int32

        init(_ descriptor: Int32) { self.descriptor = descriptor }

        deinit { if descriptor >= 0 { close(descriptor) } }
    }

    /// RENAME_NOREPLACE, which the module Glibc leaves out.
    private static let noReplace: UInt32 = 1

    private let path: String
    private var folder: File?
    private var file: File?
    private var leftOut: AuditFailure?
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
            flock(file.descriptor, LOCK_UN)
        } catch {
            // The next call opens the directory and the file again.
            (file, folder) = (nil, nil)
            throw error
        }
    }

    /// Returns the current log file, locked, and its size. Opens the file again if it was moved or removed.
    private mutating func current() throws(AuditFailure) -> (File, size: Int) {
        let name = StateLocation.auditFile()
        var attempts = 8
        while attempts > 0 {
            attempts -= 1
            let (opened, folder) = try openCurrent()
            // A program that keeps the current file locked does not stop the log.
            let isLocked = flock(opened.descriptor, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK || attempts == 0
            if isLocked, let mine = status(opened.descriptor), let named = status(name, in: folder),
                mine.st_ino == named.st_ino, mine.st_dev == named.st_dev
            {
                if mine.st_size != end { hasIncompleteLastLine = lacksEnd(opened.descriptor, size: mine.st_size) }
                return (opened, Int(mine.st_size))
            }
            file = nil
        }
        throw AuditFailure("\(path)/\(name) is replaced again and again")
    }

    private mutating func openCurrent() throws(AuditFailure) -> (File, folder: File) {
        if let file, let folder { return (file, folder) }
        let name = StateLocation.auditFile()
        let folder = try openFolder()
        let (status, opened) = try open(name, O_RDWR | O_APPEND | O_CREAT, in: folder)
        if status.st_mode & 0o077 != 0, fchmod(opened.descriptor, 0o600) != 0 {
            throw failure("\(path)/\(name)", "remove the access of others to", errno)
        }
        (file, end) = (opened, -1)
        return (opened, folder)
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
    /// - Returns: `false` if another broker is rotating the files now, or appends to a file that would be reduced; then the
    ///   line is appended to the current file, which may exceed its limit.
    private mutating func rotate(_ current: File, _ limits: AuditLimits) throws(AuditFailure) -> Bool {
        guard let folder, flock(folder.descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
        defer { flock(folder.descriptor, LOCK_UN) }
        // If the file was replaced, another broker has rotated the files already.
        if let named = status(StateLocation.auditFile(), in: folder), let mine = status(current.descriptor),
            named.st_ino == mine.st_ino
        {
            try finishReductions(in: folder)
            // A file that another broker left there, or that could not be reduced.
            guard try settle(limits, in: folder) else { return false }
            flock(current.descriptor, LOCK_UN)
            try rename(StateLocation.auditFile(), to: name(0), in: folder)
            _ = try settle(limits, in: folder)
        }
        file = nil
        return true
    }

    /// The name of an old file. File 0 was the current file until its name was taken away.
    private func name(_ number: Int) -> String {
        number == 0 ? StateLocation.auditFileInRotation : StateLocation.auditFile(number)
    }

    /// Returns the number of the first file after `number` that does not exist.
    private func end(after number: Int, in folder: File) -> Int {
        var number = number
        while status(name(number), in: folder) != nil { number += 1 }
        return number
    }

    /// Gives file 0, if there is one, its place among the old files. Each step is one call of the kernel.
    /// - Returns: `false` if another broker is appending to a file that has to be reduced.
    private mutating func settle(_ limits: AuditLimits, in folder: File) throws(AuditFailure) -> Bool {
        var end = end(after: 0, in: folder)
        guard end > 0 else { return true }
        if end > limits.oldFiles {
            let first = max(limits.oldFiles - 1, 0)
            guard try reduce(first..<end, limits, in: folder) else { return false }
            end = first + 1
        }
        // Without old files, the rest becomes the current file again, unless another broker has created one.
        if limits.oldFiles == 0,
            renameat2(
                folder.descriptor, name(0), folder.descriptor, StateLocation.auditFile(), Self.noReplace) == 0
        {
            return true
        }
        for number in stride(from: end - 1, through: 0, by: -1) {
            try rename(name(number), to: name(number + 1), in: folder)
        }
        return true
    }

    /// Replaces these files, the oldest, by one with the records that have a share in it.
    private mutating func reduce(_ numbers: Range<Int>, _ limits: AuditLimits, in folder: File) throws(AuditFailure)
        -> Bool
    {
        var files: [File] = []
        for number in numbers.reversed() {
            guard let file = try openOld(name(number), in: folder) else { continue }
            guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else { return false }
            files.append(file)
        }
        let new = "audit.new.jsonl"
        remove(new, in: folder)
        let target = try open(new, O_WRONLY | O_CREAT | O_EXCL, in: folder).1
        let budget = limits.oldFiles == 0 ? limits.fileBytes / 2 : limits.fileBytes
        var error = AuditCopy.copy(
            files.map(\.descriptor), to: target.descriptor, budget: budget, keepsNewest: limits.oldFiles > 0)
        // The other files are removed afterwards.
        if error == 0, fsync(target.descriptor) != 0 { error = errno }
        guard error == 0 else {
            unlinkat(folder.descriptor, new, 0)
            throw failure("\(path)/\(new)", "write to", error)
        }
        // From here on the new file counts, and the others do not.
        try rename(new, to: StateLocation.reducedAuditFile(numbers.lowerBound), in: folder)
        try finishReduction(numbers.lowerBound, in: folder)
        // The locks end here.
        withExtendedLifetime(files) {}
        return true
    }

    /// Opens an old file to read it. Anything else than a readable file of this user is removed or, if it is a directory with
    /// contents, renamed; then this returns `nil`.
    private mutating func openOld(_ name: String, in folder: File) throws(AuditFailure) -> File? {
        do throws(CarefulFile.Failure) {
            let file = try CarefulFile(name, in: folder.descriptor)
            let isMine = file.status.st_uid == geteuid()
            let opened = File(file.release())
            if isMine { return opened }
            leftOut = AuditFailure("\(path)/\(name) is not yours")
        } catch {
            switch error {
            // Such as too many open files, which is no fault of this file.
            case .systemCall(let number) where ![EACCES, EPERM, ENXIO, ENOENT].contains(number):
                throw failure("\(path)/\(name)", "open", number)
            default: leftOut = AuditFailure("\(path)/\(name) \(error.text)")
            }
        }
        remove(name, in: folder)
        return nil
    }

    private func remove(_ name: String, in folder: File) {
        if unlinkat(folder.descriptor, name, 0) == 0 || errno == ENOENT { return }
        if unlinkat(folder.descriptor, name, AT_REMOVEDIR) == 0 { return }
        for number in 1...100 where renameat(folder.descriptor, name, folder.descriptor, "\(name).\(number)") == 0 {
            return
        }
    }

    /// Returns what was left out of the log since the previous call.
    mutating func takeLeftOut() -> AuditFailure? {
        defer { leftOut = nil }
        return leftOut
    }

    /// Finishes what a broker began that ended meanwhile.
    private func finishReductions(in folder: File) throws(AuditFailure) {
        for first in 0..<StateLocation.mostAuditFiles
        where status(StateLocation.reducedAuditFile(first), in: folder) != nil {
            try finishReduction(first, in: folder)
        }
    }

    /// Removes the files that were reduced, the oldest first, so that no gap hides one, and names the new file as the first.
    private func finishReduction(_ first: Int, in folder: File) throws(AuditFailure) {
        let last = end(after: first, in: folder)
        for number in (first..<last).reversed() { unlinkat(folder.descriptor, name(number), 0) }
        try rename(StateLocation.reducedAuditFile(first), to: name(first), in: folder)
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

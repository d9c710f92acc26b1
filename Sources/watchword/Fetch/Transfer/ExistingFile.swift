import ArgumentParser
import Glibc

/// An existing file with a predictable name, which another user may have planted.
struct ExistingFile: Equatable {
    var mode: mode_t
    var owner: uid_t
    var links: Int

    init(_ facts: stat) { (mode, owner, links) = (facts.st_mode, facts.st_uid, Int(facts.st_nlink)) }

    init(mode: mode_t, owner: uid_t, links: Int) { (self.mode, self.owner, self.links) = (mode, owner, links) }

    private var kind: mode_t { mode & S_IFMT }

    /// Returns the reason why `user` must not resume this file; `nil` for a regular file of `user` with a single link.
    func problem(for user: uid_t) -> String? {  // guard: part-file
        if kind == S_IFLNK { return "it is a symbolic link" }
        if kind != S_IFREG { return "it is not a regular file" }
        if owner != user { return "it belongs to user \(owner), not to user \(user)" }
        return links == 1 ? nil : "it has \(links) hard links"
    }

    /// Whether a symbolic link or named pipe belongs to `user` or root.
    func isTrusted(by user: uid_t) -> Bool { owner == user || owner == 0 }

    // MARK: On disk

    static func isPipe(_ path: String) -> Bool {
        var facts = stat()
        return stat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFIFO
    }

    /// Opens a file of this user, without following a symbolic link or blocking on a pipe.
    /// - Returns: the descriptor and its attributes; `nil` if the file does not exist and `flags` lacks `O_CREAT`.
    /// - Throws: `ExitCode`, after a message, for any other file, or if opening fails.
    static func open(_ path: String, _ flags: Int32) throws -> (descriptor: Int32, facts: stat)? {
        let descriptor = Glibc.open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o666)
        var facts = stat()
        guard descriptor >= 0 else {
            let error = errno
            // In a sticky directory, the kernel may refuse first, with a less specific error.
            if lstat(path, &facts) == 0, let problem = ExistingFile(facts).problem(for: geteuid()) {
                throw refusal(path, problem)
            }
            if error == ENOENT && flags & O_CREAT == 0 { return nil }
            errno = error
            throw ResponseOutput.notWritable(path)
        }
        guard fstat(descriptor, &facts) == 0 else {
            defer { close(descriptor) }
            throw ResponseOutput.notWritable(path)
        }
        // A file without links was removed by another fetch after open(2). `PartialFile` detects that, and opens the name
        // again.
        if facts.st_nlink > 0, let problem = ExistingFile(facts).problem(for: geteuid()) {
            close(descriptor)
            throw refusal(path, problem)
        }
        return (descriptor, facts)
    }

    private static func refusal(_ path: String, _ problem: String) -> ExitCode {
        return ExitCode(
            ExitStatus.writeError,
            printing: "cannot resume \(path): \(problem); remove it, or use -o in a directory of your own")
    }
}

/// A file that a complete response replaces. The new file gets its owner and permissions, as if the old one were overwritten.
///
/// Owner and permissions are read once, before the fetch, so that a file planted later has no effect.
struct ReplacedFile {
    private let facts: stat

    /// Returns `nil` if the file does not exist.
    /// - Throws: `ExitCode`, after a message, if the file is not writable, or if another user may have planted it in a
    ///   directory that others can write to. In a sticky directory the kernel refuses this too (proc(5), protected_regular).
    init?(_ path: String) throws {
        var (facts, folder) = (stat(), stat())
        guard lstat(path, &facts) == 0 else { return nil }
        guard access(path, W_OK) == 0 else { throw ResponseOutput.notWritable(path) }
        let name = String(ResponseOutput.folder(of: path))
        if stat(name.isEmpty ? "." : name, &folder) == 0, Self.isPlanted(owner: facts.st_uid, in: folder) {
            throw ExitCode(
                ExitStatus.writeError,
                printing: "cannot write \(path): it belongs to user \(facts.st_uid); remove it, or choose another file")
        }
        self.facts = facts
    }

    /// Whether others can write to the directory, and neither its owner nor this user owns the file.
    private static func isPlanted(owner: uid_t, in folder: stat) -> Bool {
        let isForAll = folder.st_mode & 0o002 != 0 || folder.st_mode & S_ISVTX != 0 && folder.st_mode & 0o020 != 0
        return isForAll && owner != geteuid() && owner != folder.st_uid
    }

    /// Makes the incomplete file accessible to this user only.
    func restrict(_ descriptor: Int32) { fchmod(descriptor, facts.st_mode & 0o700 | 0o200) }

    /// Applies the owner and permissions to the complete file.
    func apply(to descriptor: Int32) {
        _ = fchown(descriptor, facts.st_uid, facts.st_gid)
        fchmod(descriptor, facts.st_mode & 0o777)
    }
}

/// A device or pipe. Output is written to it directly, whereas a regular file is replaced.
enum SpecialFile {
    /// Opens the file for writing. Refuses a named pipe of another user, who could read the response from it.
    static func open(_ name: String) throws -> Int32 {
        var facts = stat()
        if stat(name, &facts) == 0, isStrange(ExistingFile(facts), isUnidentified: isUnidentified(facts)) {
            throw ExitCode(
                ExitStatus.writeError,
                printing:
                    "cannot write \(name): it is a pipe of user \(facts.st_uid); remove it, or choose another file")
        }
        let descriptor = Glibc.open(name, O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ResponseOutput.notWritable(name) }
        var opened = stat()
        guard fstat(descriptor, &opened) == 0, opened.st_ino == facts.st_ino, opened.st_dev == facts.st_dev else {
            close(descriptor)
            errno = ESTALE
            throw ResponseOutput.notWritable(name)
        }
        return descriptor
    }

    static func isStrange(_ file: ExistingFile, isUnidentified: Bool) -> Bool {  // guard: planted-pipe
        file.mode & S_IFMT == S_IFIFO && !isUnidentified && !file.isTrusted(by: geteuid())
    }

    /// Whether the file is an anonymous pipe, such as `/dev/stdout` in a pipeline. Such a pipe is on the same file system as one
    /// that pipe(2) creates now.
    private static func isUnidentified(_ facts: stat) -> Bool {
        var (ends, own): ([Int32], stat) = ([-1, -1], stat())
        guard pipe(&ends) == 0 else { return false }
        defer { for end in ends { close(end) } }
        return fstat(ends[0], &own) == 0 && own.st_dev == facts.st_dev
    }
}

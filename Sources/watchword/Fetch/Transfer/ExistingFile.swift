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
        printError("cannot resume \(path): \(problem); remove it, or use -o in a directory of your own")
        return ExitCode(ExitStatus.writeError)
    }
}

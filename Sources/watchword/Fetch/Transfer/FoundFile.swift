import ArgumentParser
import Glibc

/// A file that stands under a name that others can guess, and may have put there.
struct FoundFile: Equatable {
    var mode: mode_t
    var owner: uid_t
    var links: Int

    init(_ facts: stat) { (mode, owner, links) = (facts.st_mode, facts.st_uid, Int(facts.st_nlink)) }

    init(mode: mode_t, owner: uid_t, links: Int) { (self.mode, self.owner, self.links) = (mode, owner, links) }

    private var kind: mode_t { mode & S_IFMT }

    /// Why `user` must not continue it; `nil` for a regular file that is theirs and has no other name.
    func problem(for user: uid_t) -> String? {
        if kind == S_IFLNK { return "it is a symbolic link" }
        if kind != S_IFREG { return "it is not a regular file" }
        if owner != user { return "it belongs to user \(owner), not to user \(user)" }
        return links == 1 ? nil : "it has \(links) hard links"
    }

    /// Whether a symbolic link, or a named pipe, leads where `user` or the system has meant it to.
    func isTrusted(by user: uid_t) -> Bool { owner == user || owner == 0 }

    // MARK: On disk

    static func isPipe(_ path: String) -> Bool {
        var facts = stat()
        return stat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFIFO
    }

    /// Opens what this user has left under `path`, without following a link or waiting for a pipe.
    /// - Returns: the descriptor and the size; `nil` where there is nothing, and nothing is to be created.
    /// - Throws: `ExitCode`, after a message, for a file that is not this user's own.
    static func open(_ path: String, _ flags: Int32) throws -> (descriptor: Int32, facts: stat)? {
        let descriptor = Glibc.open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o666)
        var facts = stat()
        guard descriptor >= 0 else {
            let error = errno
            // In /tmp the kernel itself may refuse, and says less.
            if lstat(path, &facts) == 0, let problem = FoundFile(facts).problem(for: geteuid()) {
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
        // A name that is gone belongs to a fetch that has just ended; the caller looks again.
        if facts.st_nlink > 0, let problem = FoundFile(facts).problem(for: geteuid()) {
            close(descriptor)
            throw refusal(path, problem)
        }
        return (descriptor, facts)
    }

    private static func refusal(_ path: String, _ problem: String) -> ExitCode {
        complain("cannot continue \(path): \(problem); remove it, or give -o in a directory of your own")
        return ExitCode(ExitStatus.writeError)
    }
}

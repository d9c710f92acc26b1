import ArgumentParser
import Glibc

/// A device, or a pipe, that is written to as it is.
enum SpecialFile {
    /// Opens it for writing. A named pipe of another user would take what is fetched to them.
    static func open(_ name: String) throws -> Int32 {
        var facts = stat()
        if stat(name, &facts) == 0, isStrange(FoundFile(facts), isNameless: isNameless(facts)) {
            complain("cannot write \(name): it is a pipe of user \(facts.st_uid); remove it, or choose another file")
            throw ExitCode(ExitStatus.writeError)
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

    static func isStrange(_ file: FoundFile, isNameless: Bool) -> Bool {
        file.mode & S_IFMT == S_IFIFO && !isNameless && !file.isTrusted(by: geteuid())
    }

    /// Whether it is on the file system of the pipes that have no name, such as `/dev/stdout` in a pipeline.
    private static func isNameless(_ facts: stat) -> Bool {
        var (ends, own): ([Int32], stat) = ([-1, -1], stat())
        guard pipe(&ends) == 0 else { return false }
        defer { for end in ends { close(end) } }
        return fstat(ends[0], &own) == 0 && own.st_dev == facts.st_dev
    }
}

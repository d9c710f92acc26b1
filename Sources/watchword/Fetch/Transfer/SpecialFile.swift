import ArgumentParser
import Glibc

/// A device or pipe. Output is written to it directly, whereas a regular file is replaced.
enum SpecialFile {
    /// Opens the file for writing. Refuses a named pipe of another user, who could read the response from it.
    static func open(_ name: String) throws -> Int32 {
        var facts = stat()
        if stat(name, &facts) == 0, isStrange(ExistingFile(facts), isUnidentified: isUnidentified(facts)) {
            printError("cannot write \(name): it is a pipe of user \(facts.st_uid); remove it, or choose another file")
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

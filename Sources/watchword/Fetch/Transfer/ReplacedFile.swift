import ArgumentParser
import Glibc

/// The file whose name a complete response takes: as though it were written to, its owner stays, and who may read it.
///
/// Looked at once, before anything is fetched: whoever puts a file there later gets nothing.
struct ReplacedFile {
    private let facts: stat

    /// `nil` where there is none.
    /// - Throws: `ExitCode`, after a message, where it cannot be written, or where another user has put it into a directory for
    ///   all: where it is sticky, the kernel refuses as well (proc(5), protected_regular).
    init?(_ path: String) throws {
        var (facts, folder) = (stat(), stat())
        guard lstat(path, &facts) == 0 else { return nil }
        guard access(path, W_OK) == 0 else { throw ResponseOutput.notWritable(path) }
        let name = String(ResponseOutput.folder(of: path))
        if stat(name.isEmpty ? "." : name, &folder) == 0, Self.isPlanted(owner: facts.st_uid, in: folder) {
            complain("cannot write \(path): it belongs to user \(facts.st_uid); remove it, or choose another file")
            throw ExitCode(ExitStatus.writeError)
        }
        self.facts = facts
    }

    /// Whether somebody who owns neither may have put it there.
    private static func isPlanted(owner: uid_t, in folder: stat) -> Bool {
        let isForAll = folder.st_mode & 0o002 != 0 || folder.st_mode & S_ISVTX != 0 && folder.st_mode & 0o020 != 0
        return isForAll && owner != geteuid() && owner != folder.st_uid
    }

    /// Until it is complete it is this user's own, and nobody else's to read.
    func restrict(_ descriptor: Int32) { fchmod(descriptor, facts.st_mode & 0o700 | 0o200) }

    /// When it is complete.
    func apply(to descriptor: Int32) {
        _ = fchown(descriptor, facts.st_uid, facts.st_gid)
        fchmod(descriptor, facts.st_mode & 0o777)
    }
}

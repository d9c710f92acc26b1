import ArgumentParser
import Glibc

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
            printError("cannot write \(path): it belongs to user \(facts.st_uid); remove it, or choose another file")
            throw ExitCode(ExitStatus.writeError)
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

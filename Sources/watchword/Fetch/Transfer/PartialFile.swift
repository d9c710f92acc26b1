import ArgumentParser
import Glibc

/// The file that `-C` resumes: `NAME.part`, next to `NAME.part.validator`, which identifies the version on the server.
final class PartialFile {
    /// The size in bytes from which validators are not stored.
    private static let longestValidator = 4096

    let path: String
    let final: String
    let descriptor: Int32
    private let replaced: ReplacedFile?
    /// The size in bytes before this attempt.
    let sizeBytes: Int
    /// The validator for `If-Range`; `nil` if the version is unknown.
    let validator: String?

    private var validatorPath: String { path + ".validator" }

    /// Returns `nil` for a device or pipe, which can be neither resumed nor replaced.
    init?(for name: String, createsFolders: Bool) throws {
        if ResponseOutput.isSpecial(name) { return nil }
        if createsFolders { try ResponseOutput.createFolders(of: name) }
        final = try ResponseOutput.target(of: name)
        path = final + ".part"
        replaced = try ReplacedFile(final)
        (descriptor, sizeBytes) = try Self.open(path)
        do { validator = try Self.read(path + ".validator") } catch {
            close(descriptor)
            throw error
        }
        replaced?.restrict(descriptor)
    }

    /// Opens the file and locks it against other fetches.
    private static func open(_ path: String) throws -> (descriptor: Int32, sizeBytes: Int) {
        while true {
            guard let (descriptor, facts) = try ExistingFile.open(path, O_RDWR | O_CREAT) else { continue }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                close(descriptor)
                throw ExitCode(
                    ExitStatus.writeError,
                    printing: "another fetch is writing \(path); wait for it, or use another name")
            }
            // Between open and flock another fetch may have renamed the file.
            var (now, named) = (stat(), stat())
            let isKnown = fstat(descriptor, &now) == 0 && lstat(path, &named) == 0
            if isKnown, facts.st_ino == named.st_ino, facts.st_dev == named.st_dev {
                return (descriptor, Int(now.st_size))
            }
            close(descriptor)
        }
    }

    private static func read(_ path: String) throws -> String? {
        guard let (file, _) = try ExistingFile.open(path, O_RDONLY) else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: longestValidator)
        let count = Glibc.read(file, &bytes, bytes.count)
        let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        return text.isEmpty || text.utf8.contains { $0 < 0x20 || $0 == 0x7F } ? nil : text
    }

    /// Truncates the file to `offset` bytes and continues there.
    func start(at offset: Int) throws {
        guard ftruncate(descriptor, offset) == 0, lseek(descriptor, offset, SEEK_SET) == offset else {
            throw ResponseOutput.notWritable(path)
        }
    }

    /// Stores the validator of the version that is being written.
    func store(_ validator: String?) { _ = Self.store(validator, at: validatorPath) }

    /// Returns whether the validator is stored.
    private static func store(_ validator: String?, at path: String) -> Bool {
        unlink(path)
        guard let validator, validator.utf8.count < longestValidator else { return false }
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { return false }
        defer { close(file) }
        let bytes = Array(validator.utf8)
        if write(file, bytes, bytes.count) == bytes.count { return true }
        unlink(path)
        return false
    }

    /// Gives an incomplete file the name that `-C` resumes. Returns the message that says so; `nil` if the file is empty, if its
    /// version cannot be stored, or if there is a partial file already.
    static func adopt(_ temporary: String, of final: String, validator: String) -> String? {
        let path = final + ".part"
        var facts = stat()
        let isText = !validator.utf8.contains { $0 < 0x20 || $0 == 0x7F }
        // link(2) neither replaces a file nor follows a link.
        guard isText, lstat(temporary, &facts) == 0, facts.st_size > 0, link(temporary, path) == 0 else { return nil }
        unlink(temporary)
        guard store(validator, at: path + ".validator") else {
            unlink(path)
            return nil
        }
        return resumable(path, facts.st_size)
    }

    private static func resumable(_ path: String, _ sizeBytes: Int) -> String {
        "\(sizeBytes) bytes are in \(path); resume with -C -"
    }

    /// Renames the file to its final name, and then releases the lock.
    func finish() throws {
        replaced?.apply(to: descriptor)
        guard rename(path, final) == 0 else { throw ResponseOutput.notWritable(final) }
        unlink(validatorPath)
        close(descriptor)
    }

    /// Closes the file after a failure, and removes it if it is empty. Returns a message if it can be resumed.
    func leave() -> String? {
        var facts = stat()
        let size = fstat(descriptor, &facts) == 0 ? facts.st_size : 0
        defer { close(descriptor) }
        guard size > 0 else {
            unlink(path)
            unlink(validatorPath)
            return nil
        }
        return access(validatorPath, R_OK) == 0 ? Self.resumable(path, size) : nil
    }
}

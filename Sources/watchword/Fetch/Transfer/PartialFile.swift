import ArgumentParser
import Glibc

/// What `-C` continues: `NAME.part`, and beside it what the server called the version that it is a part of.
final class PartialFile {
    /// The longest entity tag that is kept.
    private static let longestValidator = 4096

    let path: String
    let final: String
    let descriptor: Int32
    private let replaced: ReplacedFile?
    /// What was there before.
    let sizeBytes: Int
    /// For `If-Range`; `nil` where it cannot be known whether the rest would fit.
    let validator: String?

    private var validatorPath: String { path + ".validator" }

    /// `nil` for a device or a pipe: there is nothing to go on with, and nothing that could take its place.
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

    /// Locked: nobody else writes to it.
    private static func open(_ path: String) throws -> (descriptor: Int32, sizeBytes: Int) {
        while true {
            guard let (descriptor, facts) = try FoundFile.open(path, O_RDWR | O_CREAT) else { continue }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                close(descriptor)
                complain("The file \(path) is being written by another fetch.")
                throw ExitCode(ExitStatus.writeError)
            }
            // Between the two calls another fetch may have given it its final name.
            var (now, named) = (stat(), stat())
            let isKnown = fstat(descriptor, &now) == 0 && lstat(path, &named) == 0
            if isKnown, facts.st_ino == named.st_ino, facts.st_dev == named.st_dev {
                return (descriptor, Int(now.st_size))
            }
            close(descriptor)
        }
    }

    private static func read(_ path: String) throws -> String? {
        guard let (file, _) = try FoundFile.open(path, O_RDONLY) else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: longestValidator)
        let count = Glibc.read(file, &bytes, bytes.count)
        let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        return text.isEmpty || text.utf8.contains { $0 < 0x20 || $0 == 0x7F } ? nil : text
    }

    /// Cuts the file off, and writes on from there.
    func start(at offset: Int) throws {
        guard ftruncate(descriptor, offset) == 0, lseek(descriptor, offset, SEEK_SET) == offset else {
            throw ResponseOutput.notWritable(path)
        }
    }

    /// Remembers which version is being written now.
    func keep(_ validator: String?) {
        unlink(validatorPath)
        guard let validator, validator.utf8.count < Self.longestValidator else { return }
        let file = Glibc.open(validatorPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { return }
        defer { close(file) }
        let bytes = Array(validator.utf8)
        if write(file, bytes, bytes.count) != bytes.count { unlink(validatorPath) }
    }

    /// Gives it its final name. It is locked until then.
    func finish() throws {
        replaced?.apply(to: descriptor)
        guard rename(path, final) == 0 else { throw ResponseOutput.notWritable(final) }
        unlink(validatorPath)
        close(descriptor)
    }

    /// After a failure. What can be continued stays; the sentence says so.
    func leave() -> String? {
        var facts = stat()
        let size = fstat(descriptor, &facts) == 0 ? facts.st_size : 0
        defer { close(descriptor) }
        guard size > 0 else {
            unlink(path)
            unlink(validatorPath)
            return nil
        }
        return access(validatorPath, R_OK) == 0 ? "\(size) bytes are in \(path); -C - goes on from there." : nil
    }
}

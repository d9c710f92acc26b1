import ArgumentParser
import Glibc

/// Where a response goes: standard output, memory, or a file that gets its name only when it is complete.
final class ResponseOutput {
    private enum Place {
        /// Standard output, or what is no regular file: a device, a pipe.
        case stream
        case file(temporary: String, final: String, replaced: ReplacedFile?)
        /// It takes care of itself.
        case part(PartialFile)
        case memory
    }

    private var place: Place
    /// Where to write; negative for memory, and when all is done.
    private(set) var descriptor: Int32
    private(set) var memory: [UInt8] = []

    static func standardOutput() -> ResponseOutput { ResponseOutput(.stream, STDOUT_FILENO) }
    static func standardError() -> ResponseOutput { ResponseOutput(.stream, STDERR_FILENO) }
    static func inMemory() -> ResponseOutput { ResponseOutput(.memory, -1) }

    private init(_ place: Place, _ descriptor: Int32) { (self.place, self.descriptor) = (place, descriptor) }

    /// For `-o` and `-O`.
    convenience init(file name: String, createsFolders: Bool) throws {
        if createsFolders { try Self.createFolders(of: name) }
        let final = try Self.target(of: name)
        if Self.isSpecial(name) {
            // Giving its name to another file would take a device away.
            let descriptor = try SpecialFile.open(name)
            self.init(.stream, descriptor)
            return
        }
        let replaced = try ReplacedFile(final)
        var template = Array((Self.shortened(final) + ".XXXXXX").utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw Self.notWritable(name) }
        if replaced == nil {
            let mask = umask(0)
            umask(mask)
            fchmod(descriptor, 0o666 & ~mask)
        }
        let temporary = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.init(.file(temporary: temporary, final: final, replaced: replaced), descriptor)
    }

    /// For `-C`: a file that stays where it is until it is complete.
    convenience init(_ part: PartialFile) { self.init(.part(part), part.descriptor) }

    /// Whether there is something of that name that is no regular file.
    static func isSpecial(_ name: String) -> Bool {
        var facts = stat()
        return stat(name, &facts) == 0 && facts.st_mode & S_IFMT != S_IFREG
    }

    /// The file itself, where `name` is a symbolic link to one; also to one that is not there yet. What is written beside it and
    /// takes its place would pass by the kernel's own protection (proc(5), protected_symlinks): another user's link is refused.
    static func target(of name: String) throws -> String {
        var name = name
        for _ in 0..<40 {
            var (link, facts) = ([CChar](repeating: 0, count: Int(PATH_MAX)), stat())
            guard lstat(name, &facts) == 0, facts.st_mode & S_IFMT == S_IFLNK else { break }
            guard FoundFile(facts).isTrusted(by: geteuid()) else {
                complain(
                    "cannot write \(name): it is a symbolic link of user \(facts.st_uid); remove it, or choose another file"
                )
                throw ExitCode(ExitStatus.writeError)
            }
            let count = readlink(name, &link, link.count)
            guard count > 0 else { break }
            let next = String(decoding: link[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            name = next.hasPrefix("/") ? next : folder(of: name) + next
        }
        return name
    }

    /// With the slash at its end.
    static func folder(of name: String) -> Substring {
        name.lastIndex(of: "/").map { name[...$0] } ?? ""
    }

    /// Leaves room for the seven characters that a temporary file's name has more.
    private static func shortened(_ name: String) -> String {
        let folder = folder(of: name)
        var last = name[folder.endIndex...]
        while last.utf8.count + 7 > Int(NAME_MAX) { last.removeLast() }
        return String(folder + last)
    }

    func write(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try write($0) } }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        if case .memory = place {
            memory += bytes
            return
        }
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw failure() }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    /// Gives the file its name.
    func finish() throws {
        if case .part(let part) = place { return try part.finish() }
        guard case .file(let temporary, let final, let replaced) = place else { return closeStream() }
        replaced?.apply(to: descriptor)
        let isWritten = close(descriptor) == 0
        descriptor = -1
        guard isWritten, rename(temporary, final) == 0 else {
            let failure = failure()
            unlink(temporary)
            throw failure
        }
    }

    /// Leaves no half file behind.
    func discard() {
        guard case .file(let temporary, _, _) = place, descriptor >= 0 else { return closeStream() }
        close(descriptor)
        descriptor = -1
        unlink(temporary)
    }

    private func closeStream() {
        if descriptor > STDERR_FILENO { close(descriptor) }
        descriptor = -1
    }

    static func createFolders(of name: String) throws {
        var path = name.hasPrefix("/") ? "/" : ""
        for folder in name.split(separator: "/").dropLast() {
            path += folder + "/"
            // As curl makes them.
            if mkdir(path, 0o750) != 0 && errno != EEXIST {
                complain("The folder \(path) cannot be made: \(String(cString: strerror(errno))).")
                throw ExitCode(ExitStatus.writeError)
            }
        }
    }

    static func notWritable(_ name: String) -> ExitCode {
        complain("The file \(name) cannot be written: \(String(cString: strerror(errno))).")
        return ExitCode(ExitStatus.writeError)
    }

    func failure() -> ExitCode {
        let error = errno
        // A reader that has seen enough is no news.
        if error != EPIPE { complain("The response cannot be written: \(String(cString: strerror(error))).") }
        return ExitCode(ExitStatus.writeError)
    }
}

import ArgumentParser
import Glibc

/// The destination of a response: standard output, memory, or a file that gets its final name when it is complete.
final class ResponseOutput {
    private enum Place {
        /// Standard output, or a file that is not regular: a device or pipe.
        case stream
        case file(temporary: String, final: String, replaced: ReplacedFile?)
        /// A partial file, which closes and renames itself.
        case part(PartialFile)
        case memory
    }

    /// The maximum number of symbolic links to follow.
    private static let maxLinks = 40

    private var place: Place
    /// The descriptor to write to; negative for memory, and after `finish` or `discard`.
    private(set) var descriptor: Int32
    private(set) var memory: [UInt8] = []

    static func standardOutput() -> ResponseOutput { ResponseOutput(.stream, STDOUT_FILENO) }
    static func standardError() -> ResponseOutput { ResponseOutput(.stream, STDERR_FILENO) }
    static func inMemory() -> ResponseOutput { ResponseOutput(.memory, -1) }

    private init(_ place: Place, _ descriptor: Int32) { (self.place, self.descriptor) = (place, descriptor) }

    /// Opens the file of `-o`, `-O` or `-D`. A regular file has a temporary name until `finish`.
    convenience init(file name: String, createsFolders: Bool) throws {
        if createsFolders { try Self.createFolders(of: name) }
        let final = try Self.target(of: name)
        if Self.isSpecial(name) {
            // Renaming a file to this name would replace the device or pipe.
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

    /// Writes to the partial file of `-C`.
    convenience init(_ part: PartialFile) { self.init(.part(part), part.descriptor) }

    /// Whether `name` exists and is not a regular file.
    static func isSpecial(_ name: String) -> Bool {
        var facts = stat()
        return stat(name, &facts) == 0 && facts.st_mode & S_IFMT != S_IFREG
    }

    /// Resolves `name` if it is a symbolic link, also to a missing file. Follows at most 40 links, as the kernel does
    /// (path_resolution(7)). Refuses links of other users, because renaming a file into place bypasses the kernel's protection
    /// (proc(5), protected_symlinks).
    static func target(of path: String) throws -> String {
        var name = path
        for _ in 0...maxLinks {
            var (link, facts) = ([CChar](repeating: 0, count: Int(PATH_MAX)), stat())
            guard lstat(name, &facts) == 0, facts.st_mode & S_IFMT == S_IFLNK else { return name }
            guard ExistingFile(facts).isTrusted(by: geteuid()) else {
                throw ExitCode(
                    ExitStatus.writeError,
                    printing:
                        "cannot write \(name): it is a symbolic link of user \(facts.st_uid); remove it, or choose another file"
                )
            }
            let count = readlink(name, &link, link.count)
            guard count > 0 else { return name }
            let next = String(decoding: link[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            name = next.hasPrefix("/") ? next : folder(of: name) + next
        }
        errno = ELOOP
        throw notWritable(path)
    }

    /// Returns the directory of `name` with its trailing slash; empty if `name` contains no slash.
    static func folder(of name: String) -> Substring {
        name.lastIndex(of: "/").map { name[...$0] } ?? ""
    }

    /// Shortens the last component so that the seven additional characters of a temporary name fit.
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

    /// Closes the output. Renames a file to its final name.
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

    /// Closes the output. Removes an incomplete file, unless `validator` identifies its version, so that `-C` can resume it.
    /// - Returns: a message that names a file that can be resumed; `nil` if there is none.
    @discardableResult
    func discard(validator: String? = nil) -> String? {
        guard case .file(let temporary, let final, _) = place, descriptor >= 0 else {
            closeStream()
            return nil
        }
        close(descriptor)
        descriptor = -1
        if let text = validator.flatMap({ PartialFile.adopt(temporary, of: final, validator: $0) }) { return text }
        unlink(temporary)
        return nil
    }

    private func closeStream() {
        if descriptor > STDERR_FILENO { close(descriptor) }
        descriptor = -1
    }

    static func createFolders(of name: String) throws {
        var path = name.hasPrefix("/") ? "/" : ""
        for folder in name.split(separator: "/").dropLast() {
            path += folder + "/"
            // curl uses the same permissions.
            if mkdir(path, 0o750) != 0 && errno != EEXIST {
                throw ExitCode(
                    ExitStatus.writeError,
                    printing: "cannot create directory \(path): \(String(cString: strerror(errno)))")
            }
        }
    }

    static func notWritable(_ name: String) -> ExitCode {
        return ExitCode(ExitStatus.writeError, printing: "cannot write \(name): \(String(cString: strerror(errno)))")
    }

    func failure() -> ExitCode {
        let error = errno
        // A reader may close the pipe early, as head(1) does, without an error message.
        if error != EPIPE { printError("cannot write the response: \(String(cString: strerror(error)))") }
        return ExitCode(ExitStatus.writeError)
    }
}

/// The file of `-D`, which receives the headers of all URLs of the command.
final class HeaderFile {
    private let name: String
    private var written: [UInt8] = []

    /// - Parameter name: `-` is standard output.
    init(_ name: String) { self.name = name }

    func add(_ header: [UInt8]) throws {
        if name == "-" { return try ResponseOutput.standardOutput().write(header) }
        let file = try ResponseOutput(file: name, createsFolders: false)
        written += header
        // A device or pipe has received the previous headers already.
        try file.write(ResponseOutput.isSpecial(name) ? header : written)
        try file.finish()
    }
}

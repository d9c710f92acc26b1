import ArgumentParser
import Glibc

/// Where a response goes: standard output, memory, or a file that gets its name only when it is complete.
final class ResponseOutput {
    private enum Place {
        /// Standard output, or what is no regular file: a device, a pipe.
        case stream
        case file(temporary: String, final: String)
        case memory
    }

    private var place: Place
    /// Where to write; negative for memory, and when all is done.
    private(set) var descriptor: Int32
    private(set) var memory: [UInt8] = []

    static func standardOutput() -> ResponseOutput { ResponseOutput(.stream, STDOUT_FILENO) }
    static func inMemory() -> ResponseOutput { ResponseOutput(.memory, -1) }

    private init(_ place: Place, _ descriptor: Int32) { (self.place, self.descriptor) = (place, descriptor) }

    /// For `-o` and `-O`.
    convenience init(file name: String, createsFolders: Bool) throws {
        if createsFolders { try Self.createFolders(of: name) }
        var facts = stat()
        if stat(name, &facts) == 0, facts.st_mode & S_IFMT != S_IFREG {
            // Giving its name to another file would take a device away.
            let descriptor = open(name, O_WRONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw Self.notWritable(name) }
            self.init(.stream, descriptor)
            return
        }
        let final = Self.target(of: name)
        var template = Array((final + ".XXXXXX").utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw Self.notWritable(name) }
        let mask = umask(0)
        umask(mask)
        fchmod(descriptor, 0o666 & ~mask)
        let temporary = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.init(.file(temporary: temporary, final: final), descriptor)
    }

    /// For `-C`: a file that stays where it is until it is complete.
    convenience init(_ part: PartialFile) {
        self.init(.file(temporary: part.path, final: part.final), part.descriptor)
    }

    /// The file itself, where `name` is a symbolic link to one.
    static func target(of name: String) -> String {
        guard let path = realpath(name, nil) else { return name }
        defer { free(path) }
        return String(cString: path)
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
        guard case .file(let temporary, let final) = place else { return closeStream() }
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
        guard case .file(let temporary, _) = place, descriptor >= 0 else { return closeStream() }
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

import ArgumentParser
import Glibc

/// The body of a request, as parts in memory and in files. Regular files are read while the body is sent.
struct RequestContent: Equatable {
    enum Part: Equatable {
        case bytes([UInt8])
        case file(path: String, sizeBytes: Int)
        /// A source of unknown length that can be read only once, such as standard input or a pipe.
        case stream(descriptor: Int32)
    }

    var parts: [Part] = []
    /// The content type that the options imply; a header field of the command takes precedence.
    var contentType: String?

    /// The size in bytes; `nil` if the body contains a stream.
    var sizeBytes: Int? {
        var sum = 0
        for part in parts {
            switch part {
            case .bytes(let bytes): sum += bytes.count
            case .file(_, let size): sum += size
            case .stream: return nil
            }
        }
        return sum
    }

    /// Whether the body can be sent again.
    var isRepeatable: Bool { !parts.contains { if case .stream = $0 { true } else { false } } }

    /// Appends a file. A regular file is read when the body is sent, any other file now. A file with size 0 is also read now,
    /// because files of proc(5) have that size although they are not empty.
    mutating func append(file path: String) throws {
        if let size = try InputFile.size(path), size > 0 {
            parts.append(.file(path: path, sizeBytes: size))
        } else {
            append(try InputFile.content(of: path))
        }
    }

    mutating func append(_ bytes: some Collection<UInt8>) {
        if case .bytes(let before)? = parts.last {
            parts[parts.count - 1] = .bytes(before + bytes)
        } else {
            parts.append(.bytes(Array(bytes)))
        }
    }

    /// Returns the complete body.
    func bytes() throws -> [UInt8] {
        let reader = ContentReader(self)
        return try InputFile.readAll { try reader.read(into: $0) }
    }
}

/// Reads a body once, one part after the other.
final class ContentReader {
    private var parts: ArraySlice<RequestContent.Part>
    /// The number of bytes read from the first of `parts`.
    private var offset = 0
    private var descriptor: Int32 = -1

    init(_ content: RequestContent) { parts = content.parts[...] }

    deinit { if descriptor >= 0 { InputFile.close(descriptor) } }

    /// The descriptor of the current part if it is a stream, which may block; otherwise `nil`.
    var stream: Int32? { if case .stream(let descriptor)? = parts.first { descriptor } else { nil } }

    /// Reads the next bytes into `buffer`, at most as many as fit. Returns their number; 0 at the end of the body.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        while let part = parts.first {
            let count = try read(part, into: buffer)
            offset += count
            if count > 0 { return count }
            try finish(part)
        }
        return 0
    }

    private func read(_ part: RequestContent.Part, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        switch part {
        case .bytes(let bytes):
            let count = min(buffer.count, bytes.count - offset)
            buffer.copyBytes(from: bytes[offset..<offset + count])
            return count
        case .file(let path, let size):
            if descriptor < 0 { descriptor = try InputFile.open(path) }
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, size - offset)])
            return room.isEmpty ? 0 : try InputFile.read(descriptor, into: room, path)
        case .stream(let descriptor):
            return try InputFile.read(
                descriptor, into: buffer, descriptor == STDIN_FILENO ? "standard input" : "the body")
        }
    }

    private func finish(_ part: RequestContent.Part) throws {
        if case .file(let path, let size) = part, offset < size {
            throw InputFile.failure("\(path) became shorter while it was sent; try again")
        }
        if descriptor >= 0 { InputFile.close(descriptor) }
        (descriptor, offset) = (-1, 0)
        parts = parts.dropFirst()
    }
}

/// Reads the files of a request. Each function prints one line and throws an `ExitCode` if the file cannot be read.
enum InputFile {
    /// Opens `path` for reading; `-` is standard input.
    static func open(_ path: String) throws -> Int32 {
        if path == "-" { return STDIN_FILENO }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw failure("cannot read \(path): \(String(cString: strerror(errno)))")
        }
        return descriptor
    }

    static func close(_ descriptor: Int32) { if descriptor != STDIN_FILENO { Glibc.close(descriptor) } }

    /// Returns the size of a regular file in bytes, or `nil` for other files, whose size is unknown until they are read. Checks
    /// that a regular file is readable. Does not open a pipe, which can be opened only once.
    static func size(_ path: String) throws -> Int? {
        var facts = stat()
        guard path != "-", stat(path, &facts) != 0 || facts.st_mode & S_IFMT == S_IFREG else {
            if facts.st_mode & S_IFMT == S_IFDIR { throw failure("cannot read \(path): it is a directory") }
            return nil
        }
        close(try open(path))
        return Int(facts.st_size)
    }

    static func content(of path: String) throws -> [UInt8] {
        let descriptor = try open(path)
        defer { close(descriptor) }
        return try readAll { try read(descriptor, into: $0, path) }
    }

    /// Collects what `read` stores into its buffer, until it returns 0.
    static func readAll(_ read: (UnsafeMutableRawBufferPointer) throws -> Int) rethrows -> [UInt8] {
        var (result, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
        while true {
            let count = try buffer.withUnsafeMutableBytes { try read($0) }
            if count == 0 { return result }
            result += buffer[..<count]
        }
    }

    static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, _ path: String) throws -> Int {
        while true {
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count >= 0 { return count }
            if errno != EINTR { throw failure("cannot read \(path): \(String(cString: strerror(errno)))") }
        }
    }

    static func failure(_ text: String) -> ExitCode {
        return ExitCode(ExitStatus.readError, printing: text)
    }
}

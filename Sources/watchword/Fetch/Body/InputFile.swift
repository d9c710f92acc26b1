import ArgumentParser
import Glibc

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
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try read(descriptor, into: $0, path) }
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
        printError(text)
        return ExitCode(ExitStatus.readError)
    }
}

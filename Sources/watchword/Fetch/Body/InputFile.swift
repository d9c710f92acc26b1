import ArgumentParser
import Glibc

/// A file that is sent, or a part of something that is sent. Each of these ends the program with one line when it cannot be read.
enum InputFile {
    /// `-` is standard input.
    static func open(_ path: String) throws -> Int32 {
        if path == "-" { return STDIN_FILENO }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw failure("The file \(path) cannot be read: \(String(cString: strerror(errno))).")
        }
        return descriptor
    }

    static func close(_ descriptor: Int32) { if descriptor != STDIN_FILENO { Glibc.close(descriptor) } }

    /// `nil` for what is no regular file: only reading it tells how long it is. A pipe is not opened: that is possible once.
    static func size(_ path: String) throws -> Int? {
        var facts = stat()
        guard path != "-", stat(path, &facts) != 0 || facts.st_mode & S_IFMT == S_IFREG else {
            if facts.st_mode & S_IFMT == S_IFDIR { throw failure("The file \(path) cannot be read: It is a folder.") }
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
            if errno != EINTR { throw failure("Reading \(path) failed: \(String(cString: strerror(errno))).") }
        }
    }

    static func failure(_ text: String) -> ExitCode {
        complain(text)
        return ExitCode(ExitStatus.readError)
    }
}

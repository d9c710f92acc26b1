import ArgumentParser
import Glibc

/// The body that `-d` makes, with curl's meaning.
enum RequestBody {
    /// The parts joined with `&`; `@FILE` is the content of a file without its line ends, `@-` that of standard input.
    static func joined(_ parts: [String]) throws -> [UInt8]? {
        guard !parts.isEmpty else { return nil }
        var body: [UInt8] = []
        for (index, part) in parts.enumerated() {
            if index > 0 { body.append(UInt8(ascii: "&")) }
            body += part.hasPrefix("@") ? try content(of: String(part.dropFirst())) : Array(part.utf8)
        }
        return body
    }

    private static func content(of file: String) throws -> [UInt8] {
        let descriptor = file == "-" ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            complain("The file \(file) cannot be read: \(String(cString: strerror(errno))).")
            throw ExitCode(ExitStatus.readError)
        }
        defer { if file != "-" { close(descriptor) } }
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count >= 0 else {
                complain("Reading \(file) failed: \(String(cString: strerror(errno))).")
                throw ExitCode(ExitStatus.readError)
            }
            if count == 0 { break }
            result += buffer[..<count]
        }
        return result.filter { $0 != 0x0A && $0 != 0x0D }
    }
}

import ArgumentParser
import Glibc

/// Where a response goes: standard output, or a file that gets its name only when it is complete.
struct ResponseOutput: ~Copyable {
    private let descriptor: Int32
    /// Both names, while the file is not complete.
    private let file: (temporary: String, final: String)?

    init(file name: String?) throws {
        guard let name, name != "-" else {
            descriptor = STDOUT_FILENO
            file = nil
            return
        }
        var template = Array((name + ".XXXXXX").utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else {
            complain("The file \(name) cannot be written: \(String(cString: strerror(errno))).")
            throw ExitCode(ExitStatus.writeError)
        }
        let mask = umask(0)
        umask(mask)
        fchmod(descriptor, 0o666 & ~mask)
        self.descriptor = descriptor
        file = (String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self), name)
    }

    func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw failure() }
            rest = rest.dropFirst(count)
        }
    }

    /// Gives the file its name.
    func finish() throws {
        guard let file else { return }
        guard close(descriptor) == 0, rename(file.temporary, file.final) == 0 else { throw failure() }
    }

    /// Leaves no half file behind.
    func discard() {
        guard let file else { return }
        close(descriptor)
        unlink(file.temporary)
    }

    private func failure() -> ExitCode {
        let error = errno
        // A reader that has seen enough is no news.
        if error != EPIPE { complain("The response cannot be written: \(String(cString: strerror(error))).") }
        return ExitCode(ExitStatus.writeError)
    }
}

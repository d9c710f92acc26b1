import Glibc
import WatchwordProtocol

/// One file of the audit log, read line by line as it grows.
final class LogFile {
    /// Longer ones are not the broker's.
    private static let longestLine = 64 << 10

    let inode: UInt64
    private let descriptor: Int32
    /// The beginning of a line whose end is not there yet.
    private var rest: [UInt8] = []

    /// `nil` where there is no such file. Links are not followed: the broker makes none.
    init?(_ path: String) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0 else { return nil }
        inode = UInt64(status.st_ino)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// All whole lines that are there and were not read yet.
    func readLines(_ body: ([UInt8]) throws -> Void) throws {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return }
            var start = 0
            while let end = buffer[start..<count].firstIndex(of: UInt8(ascii: "\n")) {
                try body(rest + buffer[start..<end])
                rest = []
                start = end + 1
            }
            rest += buffer[start..<count]
            if rest.count > Self.longestLine { rest = Array("too long".utf8) }
        }
    }
}

/// The files of the audit log, which move on while they are read.
struct LogFolder {
    let path: String

    /// `nil` when neither $XDG_STATE_HOME nor $HOME is set.
    init?() {
        guard let path = StateLocation.folder(environment: { name in getenv(name).map { String(cString: $0) } })
        else { return nil }
        self.path = path
    }

    /// The oldest first.
    func open() -> [LogFile] {
        var files: [LogFile] = []
        for number in 0... {
            guard let file = LogFile("\(path)/\(StateLocation.auditFile(number))") else {
                // Between two files there is none to write to for a moment.
                if number == 0 { continue }
                break
            }
            // One that was put aside between two of these calls comes twice.
            if !files.contains(where: { $0.inode == file.inode }) { files.append(file) }
        }
        return files.reversed()
    }

    /// The files behind `file`, the oldest first; none while it is the one that is written to.
    func open(after file: LogFile?) -> [LogFile] {
        guard let file else { return open() }
        var status = stat()
        let isLast = lstat("\(path)/\(StateLocation.auditFile())", &status) == 0 && UInt64(status.st_ino) == file.inode
        if isLast { return [] }
        let files = open()
        guard let index = files.firstIndex(where: { $0.inode == file.inode }) else { return files }
        return Array(files[(index + 1)...])
    }
}

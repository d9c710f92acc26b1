import Glibc
import WatchwordProtocol

/// One file of the audit log, read line by line as it grows.
final class LogFile {
    /// The size limit of a line in bytes. The lines that the broker writes are shorter.
    private static let longestLine = 64 << 10

    let inode: UInt64
    private let descriptor: Int32
    /// The beginning of an incomplete line.
    private var rest: [UInt8] = []

    /// Returns `nil` if the file does not exist. Symbolic links are not followed, because the broker creates none.
    init?(_ path: String) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0 else { return nil }
        inode = UInt64(status.st_ino)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Calls `body` for each complete line that was not read before.
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

/// The files of the audit log, which may be rotated while they are read.
struct LogFolder {
    let path: String

    /// Returns `nil` if neither $XDG_STATE_HOME nor $HOME is set.
    init?() {
        guard let path = StateLocation.folder(environment: Environment.text)
        else { return nil }
        self.path = path
    }

    /// Opens all files, the oldest first.
    func open() -> [LogFile] {
        var files: [LogFile] = []
        func add(_ name: String) -> Bool {
            guard let file = LogFile("\(path)/\(name)") else { return false }
            // A file that is rotated between two of these calls occurs twice.
            if !files.contains(where: { $0.inode == file.inode }) { files.append(file) }
            return true
        }
        // During rotation the current file does not exist for a moment.
        _ = add(StateLocation.auditFile())
        // During rotation one number is missing, and after it also the number 0.
        var missing = 0
        for number in 0... {
            if add(StateLocation.reducedAuditFile(number)) { break }
            let name = number == 0 ? StateLocation.auditFileInRotation : StateLocation.auditFile(number)
            missing = add(name) ? 0 : missing + 1
            if missing == 2 { break }
        }
        return files.reversed()
    }

    /// Opens the files after `file`, the oldest first. Returns none while `file` is the current file.
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

internal import Glibc
internal import WatchwordProtocol

/// A lock on a file next to the socket, so that two brokers never use the same path. Released explicitly, or by the
/// kernel when the process ends for any reason. The file remains.
struct SocketLock: ~Copyable {
    private let descriptor: Int32

    /// - Throws: `.alreadyRunning` if another process holds the lock.
    init(forSocket path: String) throws(SocketFailure) {
        let file = path + ".lock"
        let descriptor: Int32
        do throws(CarefulFile.Failure) {
            descriptor = try CarefulFile(file, O_RDWR | O_CREAT).release()
        } catch {
            throw .lockFileNotUsable(path: file, reason: error.text)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let error = errno
            let pid = Self.readPID(descriptor)
            Glibc.close(descriptor)
            if error == EWOULDBLOCK { throw .alreadyRunning(path: path, pid: pid) }
            throw .systemCall("flock", path: file, error: error)
        }
        self.descriptor = descriptor
        writePID()
    }

    /// Closing alone would not release the lock while a process that another thread is starting still has the
    /// descriptor, until it calls execve(2); this process could then not take the lock again (flock(2)).
    deinit {
        flock(descriptor, LOCK_UN)
        Glibc.close(descriptor)
    }

    /// Writes the PID to the file, for the error message of a second broker. Errors are ignored.
    private func writePID() {
        let text = "\(getpid())\n"
        guard ftruncate(descriptor, 0) == 0 else { return }
        _ = text.utf8CString.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, text.utf8.count, 0) }
    }

    private static func readPID(_ descriptor: Int32) -> Int? {
        var digits = [UInt8](repeating: 0, count: 16)
        let count = digits.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return nil }
        return Int(String(decoding: digits.prefix(count).prefix { (0x30...0x39).contains($0) }, as: UTF8.self))
    }
}

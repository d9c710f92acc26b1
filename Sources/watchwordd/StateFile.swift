import Configuration
import Dispatch
import Glibc
import Logging
import Synchronization
import Threads
import WatchwordCore
import WatchwordProtocol

/// A text file in $XDG_STATE_HOME/watchword or ~/.local/state/watchword. The file contains decisions of the user, so
/// only the user may have write access. Lines that begin with `#` are comments.
///
/// Writes are done on a separate thread, in the order of the calls, because a disk may be slow.
final class StateFile: Sendable {
    /// The reason why the file cannot be read or written.
    struct Failure: Error {
        let text: String
    }

    let path: String
    private let log: Logger
    private let queue: DispatchQueue
    /// Why the last write failed; `nil` if it succeeded.
    private let failure = Mutex<String?>(nil)

    /// Returns `nil` if neither $XDG_STATE_HOME nor $HOME is set.
    init?(named name: String, environment: (String) -> String?, log: Logger) {
        guard let folder = StateLocation.folder(environment: environment) else { return nil }
        path = "\(folder)/\(name)"
        self.log = log
        queue = DispatchQueue(label: "watchword.\(name)")
    }

    /// Returns the entries in the file, without malformed lines; empty if the file cannot be used. Logs the reason.
    func entries<Entry>(_ parse: (_ line: String) -> Entry?) -> [Entry] {
        do throws(Failure) {
            let lines = try lines()
            let entries = lines.compactMap(parse)
            let malformed = lines.count - entries.count
            if malformed > 0 {
                log.warning("ignoring malformed lines", metadata: ["file": "\(path)", "lines": "\(malformed)"])
            }
            return entries
        } catch {
            log.warning("\(error.text)")
            return []
        }
    }

    /// Returns the lines without comments; empty if the file does not exist.
    /// - Throws: if the file cannot be opened, is not a regular file, belongs to another user, is writable by others or is
    ///   larger than 1 MiB.
    func lines() throws(Failure) -> [String] {
        let file: CarefulFile
        do throws(CarefulFile.Failure) { file = try CarefulFile(path) } catch {
            if error == .systemCall(ENOENT) { return [] }
            throw Failure(text: "\(path) is not used: it \(error.text)")
        }
        let status = file.status
        guard status.st_uid == getuid(), status.st_mode & 0o022 == 0, status.st_size <= 1 << 20 else {
            throw Failure(
                text: "\(path) is not used: it must be a regular file of at most 1 MiB that only you can write to")
        }
        let bytes = (try? file.contents(limit: 1 << 20)) ?? []
        let text = String(validating: bytes, as: UTF8.self) ?? ""
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
    }

    /// Replaces the contents with `lines` below `heading`, atomically. On failure, the file is unchanged and the error
    /// is logged.
    func replace(heading: String, _ lines: [String]) {
        queue.async {
            do throws(Failure) {
                try self.write(heading: heading, lines)
                self.failure.withLock { $0 = nil }
            } catch {
                self.failure.withLock { $0 = error.text }
                self.log.error("cannot save a permanent decision", metadata: ["reason": "\(error.text)"])
            }
        }
    }

    /// Calls `completion` after all previous writes, with the failure of the last one.
    func whenWritten(_ completion: @escaping @Sendable (String?) -> Void) {
        queue.async { completion(self.failure.withLock(\.self)) }
    }

    /// Waits at most `seconds` until all previous writes are done. DispatchSemaphore.wait(timeout:) would follow the
    /// wall clock, which may be set back meanwhile.
    func finish(within seconds: Int) {
        let isWritten = try? OwnedThread { [queue] in queue.sync {} }.join(within: seconds)
        if isWritten != true {
            log.error("cannot wait for the last write, which may be lost", metadata: ["file": "\(path)"])
        }
    }

    private func write(heading: String, _ lines: [String]) throws(Failure) {
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        makeFolder(folder)
        let new = "\(path).new"
        let text = "# \(heading)\n" + lines.map { "\($0)\n" }.joined()
        // A file that is left behind may be a link to another one, which must not be overwritten.
        unlink(new)
        let file = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw writeFailure(errno) }
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            bytes = bytes.dropFirst(count)
        }
        let isComplete = bytes.isEmpty && fsync(file) == 0
        let error = errno
        guard close(file) == 0, isComplete else { throw writeFailure(isComplete ? errno : error) }
        guard rename(new, path) == 0 else { throw writeFailure(errno) }
    }

    private func writeFailure(_ error: Int32) -> Failure {
        Failure(text: "cannot write \(path): \(String(cString: strerror(error))); the file is unchanged")
    }

    private func makeFolder(_ folder: String) {
        var made = ""
        for part in folder.split(separator: "/") {
            made += "/\(part)"
            _ = mkdir(made, 0o700)
        }
    }
}

/// The file of permanently trusted certificates, as lines of `https://host:port sha256-of-the-key`.
struct TrustFile: TrustPort {
    let file: StateFile

    /// Uses the file `known-certificates`. Returns `nil` without a state directory.
    init?(environment: (String) -> String?, log: Logger) {
        guard let file = StateFile(named: "known-certificates", environment: environment, log: log) else { return nil }
        self.file = file
    }

    func trustedKeys() -> [TrustedKey] { file.entries(TrustedKey.init(line:)) }

    func whenStored(_ completion: @escaping @Sendable (String?) -> Void) { file.whenWritten(completion) }

    func store(_ keys: [TrustedKey]) {
        file.replace(
            heading:
                "Certificates that you have accepted permanently, by their keys. Remove a line to be asked again.",
            keys.map(\.line))
    }
}

import Dispatch
import Glibc
import Logging
import WatchwordProtocol

/// A file of lines below $XDG_STATE_HOME/watchword or ~/.local/state/watchword that only the user may write to: whoever can
/// change it decides for the user. Lines that begin with `#` are for people.
///
/// It is written on a thread of its own, in the order of the calls: a disk may take its time.
struct StateFile: Sendable {
    /// What could not be done, to which file.
    struct Failure: Error {
        let text: String
    }

    let path: String
    private let log: Logger
    private let queue: DispatchQueue

    /// `nil` when neither of the two folders is known.
    init?(named name: String, environment: (String) -> String?, log: Logger) {
        guard let folder = StateLocation.folder(environment: environment) else { return nil }
        path = "\(folder)/\(name)"
        self.log = log
        queue = DispatchQueue(label: "watchword.\(name)")
    }

    /// Empty where there is no file. Throws where there is one that somebody else may have written.
    func lines() throws(Failure) -> [String] {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == getuid(),
            status.st_mode & 0o022 == 0, status.st_size <= 1 << 20
        else { throw Failure(text: "\(path) is not used: only you may write to it.") }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress, $0.count) }
        let text = String(validating: bytes.prefix(max(0, count)), as: UTF8.self) ?? ""
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
    }

    /// Puts `lines` in the place of what was there, below `heading`: all of them, or nothing changes and the log says why.
    func replace(heading: String, _ lines: [String]) {
        queue.async {
            do throws(Failure) { try write(heading: heading, lines) } catch {
                log.error("what is to last could not be written down", metadata: ["reason": "\(error.text)"])
            }
        }
    }

    /// Calls `completion` when everything that was to be written so far is, or could not be.
    func whenWritten(_ completion: @escaping @Sendable () -> Void) { queue.async(execute: completion) }

    /// Waits until everything is written, for at most `limit`.
    func finish(within limit: DispatchTimeInterval) {
        let done = DispatchSemaphore(value: 0)
        whenWritten { done.signal() }
        if done.wait(timeout: .now() + limit) == .timedOut {
            log.error("the file system does not answer; the last change may be lost", metadata: ["file": "\(path)"])
        }
    }

    private func write(heading: String, _ lines: [String]) throws(Failure) {
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        makeFolder(folder)
        let new = "\(path).new"
        let text = "# \(heading)\n" + lines.map { "\($0)\n" }.joined()
        let file = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw writeFailure() }
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            bytes = bytes.dropFirst(count)
        }
        let isWhole = bytes.isEmpty && fsync(file) == 0
        guard close(file) == 0, isWhole, rename(new, path) == 0 else { throw writeFailure() }
    }

    private func writeFailure() -> Failure {
        Failure(text: "\(path) cannot be written: \(String(cString: strerror(errno))). What was there is as it was.")
    }

    private func makeFolder(_ folder: String) {
        var made = ""
        for part in folder.split(separator: "/") {
            made += "/\(part)"
            _ = mkdir(made, 0o700)
        }
    }
}

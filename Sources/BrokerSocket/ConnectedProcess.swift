internal import Broker
internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

/// The process at the other end of a connection, identified through proc(5).
///
/// All files are read through one descriptor of `/proc/PID`, which never refers to a later process with the same PID.
/// The result is valid only if the process is still running after the last read.
struct ConnectedProcess: PeerProcess {
    let pid: Int32
    /// The start time in clock ticks since boot, which distinguishes processes with the same PID; `nil` if the process
    /// had ended or could not be identified.
    private let start: String?

    /// Identifies the peer of a new connection.
    /// - Parameter socket: this end of a connection through a Unix socket; `nil` for any other process.
    static func accept(socket: Int32?, pid: Int32) -> (process: ConnectedProcess, subject: Subject, executable: String?)
    {
        let descriptor = watchword_peer_process(socket ?? -1, pid)
        defer { if descriptor >= 0 { close(descriptor) } }
        let folder = descriptor >= 0 ? ProcessFolder(pid) : nil
        var facts = folder?.facts() ?? SubjectFacts()
        if let socket { facts.label = facts.label.or(label(of: socket)) }
        let start = folder?.startTime()
        facts.isCertain = start != nil && watchword_is_running(descriptor) != 0
        let process = ConnectedProcess(pid: pid, start: facts.isCertain ? start : nil)
        return (process, facts.subject, facts.program?.path)
    }

    /// A security label that identified the program does not change.
    func currentSubject(after first: Subject) -> Subject {
        if first.kind == .snap || first.kind == .apparmor { return first }
        guard var facts = examine({ $0.facts() }) else { return .unknown }
        facts.isCertain = true
        return facts.subject
    }

    func currentExecutable() -> String? { examine { $0.facts() }?.program?.path }

    /// In another mount namespace, a different file may have this path.
    func runsFile(_ path: String) -> Bool { examine { $0.runsFile(path) } ?? false }

    /// Returns what `read` finds; `nil` if the process has ended, and its number may be that of another process.
    private func examine<Value>(_ read: (borrowing ProcessFolder) -> Value) -> Value? {
        guard let start, let folder = ProcessFolder(pid), folder.startTime() == start else { return nil }
        let value = read(folder)
        return folder.startTime() == start ? value : nil
    }

    /// The label that the socket got when it was connected. Most kernels label only processes.
    private static func label(of socket: Int32) -> SubjectFacts.Label {
        SubjectFacts.Label { watchword_peer_label(socket, $0, $1) }
    }
}

extension SubjectFacts.Label {
    /// - Parameter read: writes the label to a buffer, and returns its length, or -1 with `errno` set.
    init(_ read: (_ buffer: UnsafeMutablePointer<CChar>, _ capacity: Int) -> Int32) {
        self = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            guard let start = buffer.baseAddress else { return .unreadable }
            let count = Int(read(start, buffer.count))
            guard count >= 0 else {
                return [ENOENT, ENOPROTOOPT, EINVAL, ENODATA, EOPNOTSUPP].contains(errno) ? .absent : .unreadable
            }
            let bytes = buffer[..<min(count, buffer.count)].lazy.map { UInt8(bitPattern: $0) }
            let text = bytes.prefix { $0 != 0 && $0 != 0x0A }
            if text.isEmpty { return .absent }
            return String(validating: text, as: UTF8.self).map { .text($0) } ?? .unreadable
        }
    }
}

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
    static func accept(socket: Int32, pid: Int32) -> (process: ConnectedProcess, subject: Subject, executable: String?)
    {
        let descriptor = watchword_peer_process(socket, pid)
        defer { if descriptor >= 0 { close(descriptor) } }
        let folder = descriptor >= 0 ? ProcessFolder(pid) : nil
        var facts = folder?.facts() ?? SubjectFacts()
        facts.label = label(of: socket)
        let start = folder?.startTime()
        facts.isCertain = start != nil && watchword_is_running(descriptor) != 0
        let process = ConnectedProcess(pid: pid, start: facts.isCertain ? start : nil)
        return (process, facts.subject, facts.program?.path)
    }

    /// A security label belongs to the socket and does not change.
    func currentSubject(after first: Subject) -> Subject {
        if first.kind == .snap || first.kind == .apparmor { return first }
        guard var facts = examine({ $0.facts() }) else { return .unknown }
        (facts.label, facts.isCertain) = (.absent, true)
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

    private static func label(of socket: Int32) -> SubjectFacts.Label {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            let count = Int(watchword_peer_label(socket, buffer.baseAddress, buffer.count))
            guard count >= 0 else {
                return [ENOPROTOOPT, EINVAL, ENODATA].contains(errno) ? .absent : .unreadable
            }
            let bytes = buffer[..<min(count, buffer.count)].prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            if bytes.isEmpty { return .absent }
            return String(validating: bytes, as: UTF8.self).map { .text($0) } ?? .unreadable
        }
    }
}

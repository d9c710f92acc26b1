internal import Broker
internal import CPlatform
internal import Dispatch
internal import Glibc
internal import Synchronization

/// Finds the process at the other end of a loopback connection in proc(5), on threads of its own, because that can take
/// milliseconds.
final class PeerFinder: Sendable {
    /// Several, so that one slow search does not delay all connections; few, so that searches leave processors to others.
    private let queues = (0..<4).map { DispatchQueue(label: "watchword.peers.\($0)") }
    /// The processes that were found last, the latest first: most programs open several connections.
    private let recent = Mutex<[Int32]>([])
    private static let remembered = 16
    private let diagnosis = watchword_socket_diagnosis()

    deinit {
        if diagnosis >= 0 { close(diagnosis) }
    }

    /// Returns the socket at the other end of a connection; `nil` if no process has it open. Must be called on one thread.
    func otherEnd(of socket: Int32) -> watchword_peer_socket? {
        var peer = watchword_peer_socket()
        return watchword_find_peer_socket(diagnosis, socket, &peer) == 0 ? peer : nil
    }

    /// Whether a program still has the other end of this connection open, perhaps for reading only.
    func isPeerOpen(_ socket: Int32) -> Bool {
        var peer = watchword_peer_socket()
        return watchword_find_peer_socket(diagnosis, socket, &peer) != ENOTCONN
    }

    /// Calls `completion` on another thread, with an unidentified peer if no process is found.
    /// - Parameters:
    ///   - inode: the inode of the socket at the other end, which belongs to `uid`.
    ///   - socket: this end of the connection.
    ///   - ancestor: a process whose descendants are examined first.
    func find(
        inode: UInt32, uid: UInt32, socket: Int32, ancestor: Int32?, completion: @escaping @Sendable (FrontPeer) -> Void
    ) {
        // The connection may be closed, and its number reused, before the search begins.
        let socket = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard socket >= 0 else { return completion(FrontPeer(PeerIdentity(pid: 0, uid: uid), isDescendant: false)) }
        queues[Int(inode) % queues.count].async { [self] in
            let link = "socket:[\(inode)]"
            let descendants = ancestor.map(Self.descendants) ?? []
            let pid = holder(of: link, among: descendants)
            let identity = Self.identity(pid, uid, socket, link)
            close(socket)
            completion(FrontPeer(identity, isDescendant: pid.map(descendants.contains) ?? false))
        }
    }

    /// Returns the process that has the socket open: one of `descendants` if possible, because several may share it.
    private func holder(of link: String, among descendants: [Int32]) -> Int32? {
        let recent = recent.withLock { $0 }
        let known = Set(descendants)
        let pid =
            recent.first { known.contains($0) && Self.holds(link, $0) } ?? descendants.first { Self.holds(link, $0) }
            ?? recent.first { Self.holds(link, $0) }
            ?? Self.numbers(in: "/proc").first { !known.contains($0) && Self.holds(link, $0) }
        guard let pid else { return nil }
        self.recent.withLock { $0 = Array(([pid] + $0.filter { $0 != pid }).prefix(Self.remembered)) }
        return pid
    }

    /// Returns the identity of a process, unless it has closed the socket meanwhile: its number may have been reused.
    private static func identity(_ pid: Int32?, _ uid: UInt32, _ socket: Int32, _ link: String) -> PeerIdentity {
        guard let pid else { return PeerIdentity(pid: 0, uid: uid) }
        var identity = PeerIdentity(pid: pid, uid: uid)
        identity.identify(socket: socket)
        return holds(link, pid) ? identity : PeerIdentity(pid: 0, uid: uid)
    }

    /// Returns a process and its descendants. Those whose parents have ended are among them if the process adopts them, as
    /// `watchword run` does.
    private static func descendants(of ancestor: Int32) -> [Int32] {
        var found = [ancestor]
        var open = [ancestor]
        // A process that forks faster than this loop must not keep it busy.
        while let pid = open.popLast(), found.count < 10_000 {
            for thread in numbers(in: "/proc/\(pid)/task") {
                let children = text(at: "/proc/\(pid)/task/\(thread)/children").split(separator: " ")
                for child in children.compactMap({ Int32($0) }) {
                    found.append(child)
                    open.append(child)
                }
            }
        }
        return found
    }

    /// Whether the process has a descriptor with this target.
    private static func holds(_ link: String, _ pid: Int32) -> Bool {
        let folder = "/proc/\(pid)/fd"
        return numbers(in: folder).contains { descriptor in
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
                let count = readlink("\(folder)/\(descriptor)", buffer.baseAddress!, buffer.count)
                return count == link.utf8.count && buffer[..<max(count, 0)].elementsEqual(link.utf8.map(CChar.init))
            }
        }
    }

    private static func numbers(in folder: String) -> [Int32] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var numbers: [Int32] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let number = Int32(name) { numbers.append(number) }
        }
        return numbers
    }

    private static func text(at path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = read(file, &bytes, bytes.count)
        return String(decoding: bytes[..<max(count, 0)], as: UTF8.self)
    }
}

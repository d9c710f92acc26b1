internal import Broker
internal import Dispatch
internal import Glibc

/// Finds the process at the other end of a loopback connection in proc(5), on a thread of its own, because that can take
/// milliseconds.
struct PeerFinder: Sendable {
    private let queue = DispatchQueue(label: "watchword.peers")

    /// Calls `completion` on another thread, with an unidentified peer if no process is found.
    /// - Parameters:
    ///   - inode: the inode of the socket at the other end, which belongs to `uid`.
    ///   - socket: this end of the connection, which stays open until `completion` is called.
    ///   - ancestor: a process whose descendants are examined first.
    func find(
        inode: UInt32, uid: UInt32, socket: Int32, ancestor: Int32?, completion: @escaping @Sendable (FrontPeer) -> Void
    ) {
        queue.async {
            let descendants = ancestor.map(Self.descendants) ?? []
            let link = "socket:[\(inode)]"
            if let pid = descendants.first(where: { Self.holds(link, $0) }) {
                return completion(FrontPeer(Self.identity(pid, uid, socket, link), isDescendant: true))
            }
            let known = Set(descendants)
            let pid = Self.numbers(in: "/proc").first { !known.contains($0) && Self.holds(link, $0) }
            completion(FrontPeer(Self.identity(pid, uid, socket, link), isDescendant: false))
        }
    }

    /// Returns the identity of a process, unless it has closed the socket meanwhile: its number may have been reused.
    private static func identity(_ pid: Int32?, _ uid: UInt32, _ socket: Int32, _ link: String) -> PeerIdentity {
        guard let pid else { return PeerIdentity(pid: 0, uid: uid) }
        var identity = PeerIdentity(pid: pid, uid: uid)
        identity.identify(socket: socket)
        return holds(link, pid) ? identity : PeerIdentity(pid: 0, uid: uid)
    }

    /// Returns a process and its descendants; those whose parents have ended are not among them.
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

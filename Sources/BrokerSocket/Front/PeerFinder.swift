internal import Broker
internal import CPlatform
internal import Dispatch
internal import Glibc
internal import Synchronization
internal import WatchwordProtocol

/// Finds the processes at the other ends of loopback connections in proc(5), on a thread of its own, because that can take
/// milliseconds.
final class PeerFinder: Sendable {
    struct Search: Sendable {
        /// The socket at the other end.
        let socket: watchword_peer_socket
        /// See `FrontPort.open`.
        let ancestor: Int32?
        /// Called on another thread, with process 0 if no process is found.
        let completion: @Sendable (FrontPeer) -> Void
    }

    private struct State {
        var waiting: [Search] = []
        var isBusy = false
        var isStopped = false
    }

    private static let longestPauseMicroseconds: UInt64 = 500_000

    private let queue = DispatchQueue(label: "watchword.peers", qos: .utility)
    private let state = Mutex(State())
    private let confinement = UnreadProcesses()
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

    /// Finds all processes that have a socket open. All searches that wait share one pass through proc(5), so that the work
    /// does not grow with the number of connections that a program opens at once.
    func find(_ search: Search) {
        let isFirst = state.withLock { state in
            guard !state.isStopped else { return false }
            state.waiting.append(search)
            defer { state.isBusy = true }
            return !state.isBusy
        }
        if isFirst { queue.async { [self] in pass() } }
    }

    /// Drops the searches that wait, and begins no others.
    func stop() {
        state.withLock { state in
            state.waiting = []
            state.isStopped = true
        }
    }

    /// Stops, and waits for the search that runs: its completion refers to objects of the loop.
    func shutDown() {
        stop()
        queue.sync {}
    }

    private func pass() {
        let searches = state.withLock { state in
            defer { state.waiting = [] }
            state.isBusy = !state.waiting.isEmpty
            return state.waiting
        }
        guard !searches.isEmpty else { return }
        let start = DispatchTime.now().uptimeNanoseconds
        let holders = SocketHolders(of: searches.map(\.socket))
        var identities: [Int32: PeerIdentity] = [:]
        for search in searches { search.completion(peer(search, holders, &identities)) }
        // A program that opens connections all the time gets at most half of a processor.
        let taken = (DispatchTime.now().uptimeNanoseconds - start) / 1000
        guard !state.withLock({ $0.isStopped }) else { return }
        usleep(UInt32(min(taken, Self.longestPauseMicroseconds)))
        queue.async { [self] in pass() }
    }

    private func peer(
        _ search: Search, _ sockets: SocketHolders, _ identities: inout [Int32: PeerIdentity]
    ) -> FrontPeer {
        let socket = search.socket
        let holders = sockets.holders(of: socket.inode)
        if holders.contains(where: { $0.pid == getpid() }) {
            return FrontPeer(PeerIdentity(pid: getpid(), uid: socket.uid), isDescendant: false)
        }
        var subjects: [Subject] = []
        for holder in holders {
            var identity = identities[holder.pid] ?? PeerIdentity(pid: holder.pid, uid: socket.uid)
            if identities[holder.pid] == nil { identity.identify(socket: nil) }
            identities[holder.pid] = identity
            // Its number may be that of another process meanwhile.
            let isStill = watchword_holds_socket(holder.pid, holder.place, socket.inode) != 0
            subjects.append(
                isStill && SocketHolders.isProcess(holder.pid, in: socket.cgroup) ? identity.subject : .unknown)
        }
        // A process that could not be examined may have the socket, too.
        let isDoubtful =
            holders.isEmpty
            || sockets.unread.contains {
                SocketHolders.isProcess($0, in: socket.cgroup) && confinement.mayBeSandboxed($0)
            }
        if isDoubtful { subjects.append(.unknown) }
        let subject = SubjectFacts.subject(ofHolders: subjects)
        let named = holders.first { identities[$0.pid]?.subject == subject } ?? holders.first
        var identity = named.flatMap { identities[$0.pid] } ?? PeerIdentity(pid: 0, uid: socket.uid)
        if subject.kind == .unknown { (identity.subject, identity.executable, identity.process) = (subject, nil, nil) }
        let isDescendant = !isDoubtful && search.ancestor.map { sockets.areDescendants(holders, of: $0) } ?? false
        return FrontPeer(identity, isDescendant: isDescendant)
    }
}

/// The processes that have some sockets open, found in one pass through proc(5).
private struct SocketHolders {
    struct Holder {
        let pid: Int32
        let place: watchword_place
    }

    /// The maximum number of descriptors that are examined, of one process and of all.
    private static let descriptorsOfProcess = 32 << 10
    private static let descriptors = 256 << 10
    /// The number that is examined of each process, however many others there are.
    private static let leastDescriptors = 1024

    /// The processes whose descriptors were not all examined.
    private(set) var unread: [Int32] = []
    private var found: [UInt32: [Holder]] = [:]

    init(of sockets: [watchword_peer_socket]) {
        let inodes = Set(sockets.map(\.inode)).sorted()
        let users = Set(sockets.map(\.uid))
        var places = [watchword_place](repeating: watchword_place(thread: 0, descriptor: -1), count: inodes.count)
        var left = Self.descriptors
        for pid in Self.numbers(in: "/proc") {
            var status = stat()
            guard stat("/proc/\(pid)", &status) == 0, users.contains(status.st_uid) else { continue }
            let limit = max(min(left, Self.descriptorsOfProcess), Self.leastDescriptors)
            let count = watchword_find_sockets(pid, inodes, &places, inodes.count, limit)
            if count < 0 && (errno == ENOENT || errno == ESRCH) { continue }
            left = max(0, left - max(0, min(count, limit)))
            if count < 0 || count > limit { unread.append(pid) }
            guard count > 0 else { continue }
            for (inode, place) in zip(inodes, places) where place.descriptor >= 0 {
                found[inode, default: []].append(Holder(pid: pid, place: place))
            }
        }
    }

    func holders(of inode: UInt32) -> [Holder] { found[inode] ?? [] }

    /// Whether all processes are this one or descendants of it. Those whose parents have ended are among them if the process
    /// adopts them, as `watchword run` does.
    func areDescendants(_ holders: [Holder], of ancestor: Int32) -> Bool {
        holders.allSatisfy { holder in
            var pid = holder.pid
            for _ in 0..<1024 where pid > 1 && pid != ancestor { pid = ProcessFolder(pid)?.parent() ?? 0 }
            return pid == ancestor
        }
    }

    /// Whether a process is in the control group in which a socket was created, as far as the kernel reports it. A service does
    /// not create the sockets of another one.
    static func isProcess(_ pid: Int32, in group: UInt64) -> Bool {
        // The root is also reported where the kernel records no group.
        guard group > 1, let text = ProcessFolder(pid)?.text(of: "cgroup"),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("0::") })
        else { return true }
        let own = watchword_cgroup("/sys/fs/cgroup\(line.dropFirst(3))")
        return own == 0 || own == group
    }

    private static func numbers(in folder: String) -> [Int32] {
        guard let offset = MemoryLayout<dirent>.offset(of: \.d_name), let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var numbers: [Int32] = []
        while let entry = readdir(directory) {
            // A record ends behind its name, so the whole field must not be copied.
            let name = String(cString: (UnsafeRawPointer(entry) + offset).assumingMemoryBound(to: CChar.self))
            if let number = Int32(name) { numbers.append(number) }
        }
        return numbers
    }
}

/// Decides which processes whose descriptors cannot be examined may be sandboxed. Agents for keys and browsers have such
/// processes, so not each of them is a reason for doubt.
private final class UnreadProcesses: Sendable {
    private struct Memory {
        var verdicts: [Int32: Bool] = [:]
        var end = DispatchTime.now()
    }

    /// The time for which a verdict is remembered.
    private static let lifetime = 10.0
    private let memory = Mutex(Memory())

    func mayBeSandboxed(_ pid: Int32) -> Bool {
        let known = memory.withLock { memory -> Bool? in
            if DispatchTime.now() >= memory.end { memory = Memory(end: .now() + Self.lifetime) }
            return memory.verdicts[pid]
        }
        if let known { return known }
        let verdict = Self.examine(pid)
        memory.withLock { $0.verdicts[pid] = verdict }
        return verdict
    }

    /// The label of a process can be read always. Otherwise a process is sandboxed like the first one above it that can be read:
    /// a sandbox contains all that its programs start.
    private static func examine(_ pid: Int32) -> Bool {
        var pid = pid
        for _ in 0..<64 {
            guard pid > 1, let folder = ProcessFolder(pid) else { return false }
            var facts = folder.facts()
            facts.isCertain = true
            if case .text(let label) = facts.label, SubjectFacts.confiningProfile(label) != nil { return true }
            if facts.flatpak != .unreadable { return facts.subject.isSandboxed }
            guard let parent = folder.parent() else { return false }
            pid = parent
        }
        return true
    }
}

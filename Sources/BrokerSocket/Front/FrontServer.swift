public import Broker
internal import CPlatform
internal import Dispatch
public import EventLoop
internal import Glibc
public import Logging
public import WatchwordCore
public import WatchwordProtocol

/// Listens for the programs of fronts, checks who they are, and passes their requests to a service. Used on its loop
/// only.
public final class FrontServer {
    /// The maximum number of connections of one front.
    private static let connectionsOfFront = 4096
    /// The maximum number of connections of one process to all fronts. A connection with a tunnel needs two descriptors.
    private static var connectionsOfProgram: Int { min(connectionsOfFront / 2, Descriptors.ofClients / 3) }

    /// The maximum number of connections whose programs are being looked for. Others wait in the kernel's queue, so that one
    /// program cannot use up the connections of a front before it is known.
    private static let mostSearches = 512

    let loop: EventLoop
    let log: Logger
    let clock: LoopClock
    /// The read buffer, shared by all connections.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)
    private(set) var service: (any FrontService)?
    private let uid: UInt32
    private let finder = PeerFinder()
    let ownPorts = OwnPorts()
    private var listeners: [FrontID: FrontListener] = [:] {
        didSet { ownPorts.set(Set(listeners.values.compactMap(\.address.port))) }
    }
    private var connections: [FrontID: [ObjectIdentifier: FrontConnection]] = [:]
    /// The socket of the service manager, until a front uses it.
    private var inherited: InheritedFront?
    /// The connections whose programs are being looked for. The finder refers to them by number only, so that none is
    /// deinitialized on its thread.
    private var searches: [Int: FrontConnection] = [:]
    private var lastSearch = 0
    /// The number of connections by process.
    private var programs: [Int32: Int] = [:]

    public init(on loop: EventLoop, log: Logger) {
        (self.loop, self.log, clock) = (loop, log, LoopClock(of: loop))
        uid = getuid()
    }

    deinit { buffer.deallocate() }

    /// Sets the receiver of requests, before the first front is opened.
    public func serve(_ service: any FrontService) { self.service = service }

    /// This server, for callers that the compiler does not know to be on the loop.
    public var port: LoopBound<FrontServer> { LoopBound(self, to: loop) }

    func open(
        _ front: FrontID, at address: FrontAddress, isLocalhost: Bool, ancestor: Int32?
    ) throws(FrontFailure) -> FrontAddress {
        let passed = inherited?.address == address ? inherited.take() : nil
        let listener = try FrontListener(
            front, at: address, passed?.descriptor, isLocalhost: isLocalhost, ancestor: ancestor, of: self)
        listeners[front] = listener
        return listener.address
    }

    /// Adopts a listening socket of the service manager, before the first front is opened.
    /// - Parameter descriptor: this object takes ownership.
    public func adopt(_ descriptor: Int32) throws(SocketFailure) { inherited = try InheritedFront(descriptor) }

    /// Closes the socket of the service manager unless a front uses it.
    public func closeUnused() {
        guard let unused = inherited.take() else { return }
        log.error(
            "the socket of the service manager is not used; set front.proxy to its address",
            metadata: ["listen": "\(unused.address.text)"])
        Glibc.close(unused.descriptor)
    }

    func close(_ front: FrontID) {
        listeners.removeValue(forKey: front)?.close()
        for connection in (connections[front] ?? [:]).values { connection.leaveFront() }
    }

    /// Closes all fronts.
    public func stop() {
        for front in Array(listeners.keys) { close(front) }
        finder.stop()
    }

    /// Waits for the search of a program, which refers to this server. To be called before the last reference is released.
    public func shutDown() {
        finder.shutDown()
        searches = [:]
    }

    /// Admits a connection if its other end belongs to this user; otherwise closes it before a byte is read.
    /// - Parameter descriptor: the accepted socket; this method takes ownership.
    func admit(_ descriptor: Int32, at listener: FrontListener) {
        guard connections[listener.front, default: [:]].count < Self.connectionsOfFront else {
            log.warning("too many connections to a front", metadata: ["limit": "\(Self.connectionsOfFront)"])
            return refuse(descriptor)
        }
        if case .socket = listener.address {
            guard let peer = PeerIdentity(ofSocket: descriptor), PeerPolicy(uid: uid).admits(peer) else {
                return refuse(descriptor)
            }
            return add(descriptor, listener).identified(FrontPeer(peer, isDescendant: false))
        }
        let peer = finder.otherEnd(of: descriptor)
        // guard: front-uid
        guard let peer, peer.uid == uid else {
            log.warning(
                "connection to a front refused: peer not allowed", metadata: ["uid": peer.map { "\($0.uid)" } ?? "none"]
            )
            return refuse(descriptor)
        }
        watchword_send_without_delay(descriptor)
        lastSearch += 1
        let number = lastSearch
        searches[number] = add(descriptor, listener)
        finder.find(
            PeerFinder.Search(socket: peer, ancestor: listener.ancestor) { [loop, server = port] found in
                loop.post { server.value.searches.removeValue(forKey: number)?.identified(found) }
            })
    }

    /// Whether another connection can be accepted.
    var hasRoomForSearch: Bool { searches.count < Self.mostSearches }

    private func refuse(_ descriptor: Int32) { Glibc.close(descriptor) }

    private func add(_ descriptor: Int32, _ listener: FrontListener) -> FrontConnection {
        let connection = FrontConnection(self, descriptor: descriptor, front: listener.front)
        connections[listener.front, default: [:]][ObjectIdentifier(connection)] = connection
        return connection
    }

    /// Counts an identified connection. Returns `false` if its process has too many, or is the broker: a program that made it connect
    /// would be served as the broker.
    func take(_ pid: Int32) -> Bool {
        // guard: front-own-process
        guard pid != getpid() else {
            log.warning("connection to a front refused: it comes from the broker itself")
            return false
        }
        guard programs[pid, default: 0] < Self.connectionsOfProgram else {
            log.warning("too many connections of a program to fronts", metadata: ["pid": "\(pid)"])
            return false
        }
        programs[pid, default: 0] += 1
        return true
    }

    /// Ends the count of a connection that was taken.
    func release(_ pid: Int32) {
        let count = programs[pid, default: 0] - 1
        programs[pid] = count > 0 ? count : nil
    }

    /// Whether there are descriptors for another tunnel.
    var hasRoomForTunnel: Bool { Descriptors().hasRoom }

    func remove(_ connection: FrontConnection) {
        connections[connection.front]?[ObjectIdentifier(connection)] = nil
        if connections[connection.front]?.isEmpty == true { connections[connection.front] = nil }
    }

    /// Whether a program still has the other end of this connection open, perhaps for reading only.
    func isPeerOpen(_ descriptor: Int32) -> Bool { finder.isPeerOpen(descriptor) }
}

/// The server as a front port. Every call must be made on its loop; `value` checks that.
extension LoopBound: FrontPort where Value == FrontServer {
    public func open(
        _ front: FrontID, at address: FrontAddress, isLocalhost: Bool, ancestor: Int32?
    ) throws(FrontFailure) -> FrontAddress {
        try value.open(front, at: address, isLocalhost: isLocalhost, ancestor: ancestor)
    }

    public func close(_ front: FrontID) { value.close(front) }

    public var ownPorts: OwnPorts { value.ownPorts }
}

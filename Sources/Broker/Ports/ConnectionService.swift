public import WatchwordProtocol

/// Names one connection for as long as the broker runs; never used again.
public struct ConnectionID: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// Through which of the broker's sockets a client came.
public enum Entrance: Sendable {
    case main
    /// `restricted.sock`, for containers and other machines: whoever is there fetches and answers its own challenges, and gets
    /// nothing of what is stored.
    case restricted
}

/// Who is at the other end of a connection, as the kernel said when it was accepted.
public struct PeerIdentity: Sendable {
    public var pid: Int32
    public var uid: UInt32
    /// The program file, where the kernel tells.
    public var executable: String?
    /// On whose behalf it speaks.
    public var subject: Subject
    /// Reads anew who it is: a process can run another program than the one that connected.
    public var subjectNow: @Sendable () -> Subject
    /// The program file that it runs now; `nil` where the kernel does not tell, or where the process is another one.
    public var executableNow: @Sendable () -> String?
    /// Whether that is the file of this path here, and not in a mount namespace of the process's own. Only for paths that the
    /// configuration names: a client could name one that nobody can look at without waiting.
    public var runsFile: @Sendable (String) -> Bool
    public var entrance = Entrance.main

    public init(pid: Int32, uid: UInt32, executable: String? = nil, subject: Subject = .unknown) {
        self.pid = pid
        self.uid = uid
        self.executable = executable
        self.subject = subject
        subjectNow = { subject }
        executableNow = { executable }
        runsFile = { $0 == executable }
    }
}

/// The outgoing side of one connection, as far as the broker knows it.
///
/// Called on the broker's executor only. Neither call blocks or fails: a link that can no longer send drops the bytes,
/// and says `connectionClosed` in its own time.
public protocol ClientLink: Sendable {
    /// Queues `bytes`. A peer that does not read is the link's to limit.
    func send(_ bytes: [UInt8])

    /// What was sent, and is not in the hands of the kernel.
    var waitingBytes: Int { get }

    /// Closes the connection when everything sent before has been written.
    func close()

    /// Closes the connection at once; what waits to be sent is dropped.
    func abandon()

    /// Reads no more, sends `bytes` behind everything else, and gives the socket away; the connection ends for the service.
    /// - Parameter taker: gets a descriptor that is its own; never called when the connection ends first.
    func handOver(after bytes: [UInt8], to taker: @escaping @Sendable (Int32) -> Void)
}

/// What a socket server tells the broker. Every call comes on the broker's executor, in the order in which things
/// happened; `connectionClosed` is the last for its connection, and always comes.
public protocol ConnectionService: Sendable {
    func connectionOpened(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID

    /// `bytes` are lent for the length of the call.
    func received(_ bytes: UnsafeRawBufferPointer, from connection: ConnectionID)

    /// So much of what was sent waits for the peer to read it; said after every time that something was sent, and again until
    /// it is nothing.
    func leftUnread(_ count: Int, _ connection: ConnectionID)

    /// The peer has shut down its writing side and may still read: what it asked for is still answered.
    func inputEnded(_ connection: ConnectionID)

    func connectionClosed(_ connection: ConnectionID)
}

public import WatchwordProtocol

/// The identifier of a connection, which is not reused while the broker runs.
public struct ConnectionID: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// The broker's socket to which a client has connected.
public enum SocketKind: Sendable {
    case main
    /// `restricted.sock`, for containers and other machines. Its clients can fetch and answer their own challenges, but
    /// have no access to stored credentials.
    case restricted
}

/// The process at the other end of a connection, as the kernel reported it when the connection was accepted.
public struct PeerIdentity: Sendable {
    public var pid: Int32
    public var uid: UInt32
    /// The path of the executable; `nil` if the kernel does not report it.
    public var executable: String?
    /// The subject for consent and grants.
    public var subject: Subject
    /// The process as it is now; `nil` if nothing is known of it.
    public var process: (any PeerProcess)?
    public var socketKind = SocketKind.main
    /// The number of bytes that were sent before the process was identified: by this program, or by another one that has called
    /// exec since then. The first calls of `received` pass these bytes, and no others with them.
    public var earlyBytes = 0

    public init(pid: Int32, uid: UInt32, executable: String? = nil, subject: Subject = .unknown) {
        self.pid = pid
        self.uid = uid
        self.executable = executable
        self.subject = subject
    }

    /// The current subject of the process, which changes if it calls exec.
    var currentSubject: Subject { process?.currentSubject(after: subject) ?? subject }
}

/// A running process, which the kernel is asked about with each call.
public protocol PeerProcess: Sendable {
    /// Returns the current subject of a process whose subject was `first` when it connected.
    func currentSubject(after first: Subject) -> Subject

    /// Returns the path of the current executable; `nil` if the kernel does not report it or the process has ended.
    func currentExecutable() -> String?

    /// Returns whether the process runs the file that has this path in the broker's mount namespace. Must be called only
    /// with paths from the configuration: a path chosen by a client could be on a file system that does not respond.
    func runsFile(_ path: String) -> Bool
}

/// The outgoing side of a connection.
///
/// Used on the broker's executor only. No method blocks or fails: a link that can no longer send drops the bytes, and
/// the service receives `connectionClosed` later.
public protocol ClientLink: AnyObject {
    /// Queues `bytes`. The link disconnects a peer whose queue exceeds a limit.
    func send(_ bytes: [UInt8])

    /// The number of queued bytes that the kernel has not accepted yet.
    var waitingBytes: Int { get }

    /// Closes the connection after all queued bytes are sent.
    func close()

    /// Closes the connection at once, and drops all queued bytes.
    func abandon()

    /// Stops reading, sends `bytes` after all queued bytes, and passes the socket to `taker`. The service then receives
    /// `connectionClosed`.
    /// - Parameter taker: takes ownership of the descriptor; not called if the connection ends first.
    func detach(after bytes: [UInt8], to taker: @escaping @Sendable (Int32) -> Void)
}

/// Receives the events of a socket server. All calls are made on the broker's executor, in the order of the events.
/// `connectionClosed` is always the last call for its connection.
public protocol ConnectionService: Sendable {
    func connectionOpened(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID

    /// - Parameter bytes: valid during the call only.
    func received(_ bytes: UnsafeRawBufferPointer, from connection: ConnectionID)

    /// Reports the number of queued bytes that the kernel has not accepted, because the peer has not read enough: after
    /// each send, then at intervals until the number is 0.
    func leftUnread(_ count: Int, _ connection: ConnectionID)

    /// Reports that the peer has shut down its writing side. The peer may still read, so its open calls are still
    /// answered.
    func inputEnded(_ connection: ConnectionID)

    func connectionClosed(_ connection: ConnectionID)
}

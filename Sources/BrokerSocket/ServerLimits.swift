public import WatchwordProtocol

/// The bounds of the socket server. Sizes are in bytes.
public struct ServerLimits: Sendable {
    /// Connections at once, on all sockets; a newcomer above that is closed without a word.
    public var connections: Int
    /// Of one process: seven eighths of all, and of the descriptors that clients may have, so that one that loses sight of its
    /// connections does not keep the others out.
    public var connectionsOfProcess: Int
    /// With more than this waiting to be sent, nothing more is read from a client until it is below the low mark.
    public var highWaterMark: Int
    public var lowWaterMark: Int
    /// A client that lets this much pile up does not read; its connection is closed.
    public var outgoingQueue: Int
    /// What is read from one client before the others have their turn: no more messages than cost little time, or so much of
    /// one that is large.
    public var readBytes: Int
    public var largeReadBytes: Int
    /// Reads in one turn from a client that is gone.
    var lastReads = 64
    /// A client that takes less than `readerBytes` in so long, while more waits for it, does not read either.
    public var readerPause: Duration
    public var readerBytes: Int

    public init(
        connections: Int = 4096, connectionsOfProcess: Int? = nil,
        highWaterMark: Int = 4 << 20, lowWaterMark: Int = 1 << 20,
        outgoingQueue: Int = Limits.outgoingQueueBytes, readBytes: Int = 512, largeReadBytes: Int = 64 << 10,
        readerPause: Duration = Limits.readerPause, readerBytes: Int = Limits.readerBytes
    ) {
        self.connections = connections
        self.connectionsOfProcess = connectionsOfProcess ?? max(min(connections, Descriptors.ofClients) * 7 / 8, 1)
        self.highWaterMark = highWaterMark
        self.lowWaterMark = lowWaterMark
        self.outgoingQueue = outgoingQueue
        self.readBytes = readBytes
        self.largeReadBytes = largeReadBytes
        self.readerPause = readerPause
        self.readerBytes = readerBytes
    }
}

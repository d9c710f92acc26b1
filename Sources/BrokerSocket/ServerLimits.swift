public import WatchwordProtocol

/// The limits of the socket server. Sizes are in bytes.
public struct ServerLimits: Sendable {
    /// The maximum number of connections on all sockets. Further connections are closed at once.
    public var connections: Int
    /// The maximum number of connections of one process. By default 7/8 of `connections`, or of the descriptors for
    /// clients if these are fewer, so that a process that leaks connections does not lock out others.
    public var connectionsOfProcess: Int
    /// Above this amount of unsent output, reading from the client pauses, until the amount is below `lowWaterMark`.
    public var highWaterMark: Int
    public var lowWaterMark: Int
    /// A client with more unsent output is disconnected.
    public var outgoingQueue: Int
    /// The maximum size of one read from a client. It is small, so that a client with many messages does not delay
    /// others.
    public var readBytes: Int
    /// The maximum size of one read within a large message.
    public var largeReadBytes: Int
    /// The maximum number of reads of remaining input from a client that has hung up.
    var lastReads = 64
    /// A client with unsent output that reads less than `readerBytes` in this time is disconnected.
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

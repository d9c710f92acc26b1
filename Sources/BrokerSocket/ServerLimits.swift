public import WatchwordProtocol

/// The bounds of the socket server. Sizes are in bytes.
public struct ServerLimits: Sendable {
    /// Connections at once; a newcomer above that is closed without a word.
    public var connections: Int
    /// With more than this waiting to be sent, nothing more is read from a client until it is below the low mark.
    public var highWaterMark: Int
    public var lowWaterMark: Int
    /// A client that lets this much pile up does not read; its connection is closed.
    public var outgoingQueue: Int

    public init(
        connections: Int = 4096, highWaterMark: Int = 4 << 20, lowWaterMark: Int = 1 << 20,
        outgoingQueue: Int = Limits.outgoingQueueBytes
    ) {
        self.connections = connections
        self.highWaterMark = highWaterMark
        self.lowWaterMark = lowWaterMark
        self.outgoingQueue = outgoingQueue
    }
}

/// The most of one kind of thing that one connection, all connections of one process, and all clients may hold.
public struct HoldingLimit: Sendable {
    public var connection: Int
    public var program: Int
    public var everybody: Int

    public init(connection: Int, program: Int, everybody: Int) {
        self.connection = connection
        self.program = program
        self.everybody = everybody
    }
}

/// What clients may hold of the broker at once: what one program leaves undone is not to fill the memory or the disk of all. Sizes are in
/// bytes. A test reaches each one.
public struct HoldingLimits: Sendable {
    /// Fetches that are not answered. What one connection may have of them is for its requests in flight to say.
    public var fetches = HoldingLimit(connection: .max, program: 2048, everybody: 8192)
    /// Response bodies that are not read to their end, and for which the server waits: each keeps a megabyte at most, or
    /// counts among `responseBytes`.
    public var bodies = HoldingLimit(connection: Limits.openBodies, program: 256, everybody: 1024)
    /// What came in messages to be sent on, of fetches that are not answered.
    public var requestBytes = HoldingLimit(connection: 32 << 20, program: 64 << 20, everybody: 256 << 20)
    /// What has come for fetches that are not answered; beyond it bodies come as handles, and wait.
    public var responseBytes = HoldingLimit(connection: 32 << 20, program: 64 << 20, everybody: 256 << 20)
    /// What is in temporary files: the bodies of responses that wait for an answer, and copies of requests' bodies.
    public var diskBytes = HoldingLimit(connection: 256 << 20, program: 512 << 20, everybody: 2 << 30)
    /// Messages of which not all has come. What one connection may have of them is for its framing to say, which skips the rest.
    public var messageBytes = HoldingLimit(connection: .max, program: 64 << 20, everybody: 256 << 20)
    /// What waits for clients that do not read.
    public var replyBytes = HoldingLimit(
        connection: Limits.outgoingQueueBytes, program: 64 << 20, everybody: 256 << 20)

    public init() {}
}

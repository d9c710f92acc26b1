internal import WatchwordProtocol

/// The limits of one quota: for a connection, for all connections of a process, and for all clients.
public struct QuotaLimit: Sendable {
    public var connection: Int
    public var program: Int
    public var allPrograms: Int
}

/// The quotas of clients, so that one program cannot fill the memory or the disk. Sizes are in bytes. Each limit is
/// covered by a test.
public struct QuotaLimits: Sendable {
    /// Unanswered fetches. One connection is limited by its requests in flight.
    public var fetches = QuotaLimit(connection: .max, program: 2048, allPrograms: 8192)
    /// Response bodies not yet read to their end, whose servers may have to wait. Each body buffers at most 1 MiB, or
    /// counts against `responseBytes`.
    public var bodies = QuotaLimit(connection: Limits.openBodies, program: 256, allPrograms: 1024)
    /// Request data of unanswered fetches that was received in messages.
    public var requestBytes = QuotaLimit(connection: 32 << 20, program: 64 << 20, allPrograms: 256 << 20)
    /// Response data of unanswered fetches. Above the limit, bodies are returned as handles, and reading from the
    /// server pauses.
    public var responseBytes = QuotaLimit(connection: 32 << 20, program: 64 << 20, allPrograms: 256 << 20)
    /// Temporary files: large bodies of responses with a challenge, until it is answered, and copies of request bodies.
    public var diskBytes = QuotaLimit(connection: 256 << 20, program: 512 << 20, allPrograms: 2 << 30)
    /// Incomplete messages. One connection is limited by the framing, which skips the rest of a message that is too
    /// large.
    public var messageBytes = QuotaLimit(connection: .max, program: 64 << 20, allPrograms: 256 << 20)
    /// Output that clients have not read.
    public var replyBytes = QuotaLimit(
        connection: Limits.outgoingQueueBytes, program: 64 << 20, allPrograms: 256 << 20)

    public init() {}
}

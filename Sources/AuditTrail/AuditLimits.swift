/// The limits of the audit log.
public struct AuditLimits: Sendable, Equatable {
    /// The maximum size of a file in bytes. A file is rotated before a line that would exceed it.
    public var fileBytes: Int
    /// The number of rotated files to retain.
    public var oldFiles: Int

    public init(fileBytes: Int = 4 << 20, oldFiles: Int = 4) {
        self.fileBytes = fileBytes
        self.oldFiles = oldFiles
    }

    /// The maximum number of events of one kind and one program that wait to be written, and the size of their texts from which
    /// on no more are queued. Each program has its own share for each kind, so that its events keep out neither those of
    /// another kind nor those of another program.
    static let (queue, queueBytes) = (128, 256 << 10)
    /// The same for all events. The shares of one program, for all kinds, are less than half of it.
    static let (wholeQueue, wholeQueueBytes) = (8192, 16 << 20)
}

/// The reason why a line could not be written.
public struct AuditFailure: Error, Sendable, Equatable {
    /// The message for the log, including the path.
    public let text: String

    init(_ text: String) { self.text = text }
}

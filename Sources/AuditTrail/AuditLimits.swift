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

    /// The maximum number of events of one kind that wait to be written: enough for a second of a busy broker. Each kind has its
    /// own share, so that refused requests do not keep out the use of a login.
    static let queue = 512
}

/// The reason why a line could not be written.
public struct AuditFailure: Error, Sendable, Equatable {
    /// The message for the log, including the path.
    public let text: String

    init(_ text: String) { self.text = text }
}

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

    /// The maximum number of events waiting to be written: enough for a few seconds of a busy broker, and less than 1
    /// MB.
    static let queue = 1024
}

/// The reason why a line could not be written.
public struct AuditFailure: Error, Sendable, Equatable {
    /// The message for the log, including the path.
    public let text: String

    init(_ text: String) { self.text = text }
}

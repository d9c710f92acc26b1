/// The bounds of the audit log.
public struct AuditLimits: Sendable, Equatable {
    /// A file that a line would make larger is put aside first. In bytes.
    public var fileBytes: Int
    /// Files that were put aside and are still there.
    public var oldFiles: Int

    public init(fileBytes: Int = 4 << 20, oldFiles: Int = 4) {
        self.fileBytes = fileBytes
        self.oldFiles = oldFiles
    }

    /// Events that wait to be written: some seconds of a busy broker, and less than a megabyte.
    static let queue = 1024
}

/// Why a line could not be written.
public struct AuditFailure: Error, Sendable, Equatable {
    /// What happened, to which file, and what to do about it.
    public let text: String

    init(_ text: String) { self.text = text }
}

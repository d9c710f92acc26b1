/// The limits of the requests that a front reads from one connection.
public struct FrontLimits: Sendable, Equatable {
    /// Size of the request line and the header fields of a request, and separately of its trailers, in bytes.
    public var headBytes: Int
    /// Header fields of one request, and separately its trailers.
    public var fields: Int
    /// Empty lines that are skipped before a request line (RFC 9112 section 2.2).
    public var emptyLines: Int
    /// Total size of the chunk extensions of one body, in bytes (RFC 9112 section 7.1.1).
    public var chunkExtensionBytes: Int
    /// Size of the largest part of a body that is returned at once, in bytes.
    public var partBytes: Int

    public init(
        headBytes: Int = 64 << 10, fields: Int = 128, emptyLines: Int = 8, chunkExtensionBytes: Int = 4096,
        partBytes: Int = 64 << 10
    ) {
        self.headBytes = headBytes
        self.fields = fields
        self.emptyLines = emptyLines
        self.chunkExtensionBytes = chunkExtensionBytes
        self.partBytes = partBytes
    }
}

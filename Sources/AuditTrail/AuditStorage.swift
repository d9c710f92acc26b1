/// Takes lines, one after the other: files in the daemon, something that fails in tests.
protocol AuditStorage: Sendable {
    /// Appends the bytes of one line, its end included: all of them, or it fails.
    mutating func append(_ line: [UInt8], _ limits: AuditLimits) throws(AuditFailure)
}

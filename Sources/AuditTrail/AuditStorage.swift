/// The storage of audit records: files in the daemon, a fake that can fail in tests.
protocol AuditStorage: Sendable {
    /// Appends one line, which includes its line end. Throws if the line was not completely written.
    mutating func append(_ line: [UInt8], _ limits: AuditLimits) throws(AuditFailure)
    /// Returns why an old file could not be retained, once.
    mutating func takeLeftOut() -> AuditFailure?
}

/// Where the certificates that are trusted for good are written down. Adapters hold no secret: what they keep can be seen by
/// everybody who connects to the servers.
public protocol TrustPort: Sendable {
    /// As they were kept last; empty where nothing was, or where nothing can be read.
    func trustedKeys() -> [TrustedKey]

    /// Replaces what was kept: all of it, or nothing.
    func keep(_ keys: [TrustedKey]) throws(TrustFailure)
}

/// Why what is trusted could not be written down.
public struct TrustFailure: Error, Sendable, Equatable {
    /// What happened, to which file, and what to do about it.
    public let text: String

    public init(_ text: String) { self.text = text }
}

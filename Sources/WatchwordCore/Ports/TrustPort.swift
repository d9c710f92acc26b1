/// Where the certificates that are trusted for good are written down. Adapters hold no secret: what they keep can be seen by
/// everybody who connects to the servers.
public protocol TrustPort: LastingPort {
    /// As they were kept last; empty where nothing was, or where nothing can be read.
    func trustedKeys() -> [TrustedKey]

    /// Replaces what was kept: all of it, or nothing. It does not wait for the disk; whoever cannot write logs why.
    func keep(_ keys: [TrustedKey])
}

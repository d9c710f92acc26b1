/// When a server's certificate is good enough.
public enum TrustPolicy: Sendable, Equatable {
    /// When it verifies.
    case verify
    /// When its key is this one, whatever else is wrong; only together with an identity.
    case leaf(spkiSha256: [UInt8])
    /// Never: a new connection is made, and fails with the facts even if the certificate verifies.
    case ask
}

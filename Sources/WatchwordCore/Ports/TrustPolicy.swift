/// The condition under which a server's certificate is accepted.
public enum TrustPolicy: Sendable, Equatable {
    /// The certificate verifies.
    case verify
    /// The key of the leaf certificate has this hash; other problems are ignored. Requires an identity.
    case leaf(spkiSha256: [UInt8])
    /// Never: a new connection is made, and fails with the facts about the certificate even if it verifies.
    case ask
}

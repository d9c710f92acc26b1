/// A key of the broker to which a token is bound (RFC 9449), on the curve P-256.
public struct ProofKey: Sendable, Equatable {
    /// The private key in DER, as OpenSSL writes it.
    public let privateKey: Secret
    /// The two coordinates of the public key, 32 bytes each.
    public let publicKey: [UInt8]

    public init(privateKey: Secret, publicKey: [UInt8]) { (self.privateKey, self.publicKey) = (privateKey, publicKey) }
}

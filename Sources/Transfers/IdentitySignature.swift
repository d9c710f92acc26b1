internal import WatchwordCore
internal import WatchwordProtocol

/// The properties of a connection that distinguish one identity from another. If they change under the same identity, for
/// example because a certificate file was replaced, its previous connections are not used again.
struct IdentitySignature: Equatable {
    private let trust: TrustPolicy
    private let certificate: CertificateContent?
    private let handshakes: [Handshake]

    /// - Parameter certificate: the content of the client certificate that this request uses; its key was checked when it
    ///   was loaded.
    init(_ request: SharedRequest, certificate: CertificateContent?) {
        trust = request.trust
        self.certificate = certificate
        handshakes = request.handshakes
    }
}

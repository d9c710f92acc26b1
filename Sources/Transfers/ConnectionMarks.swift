internal import WatchwordCore
internal import WatchwordProtocol

/// The properties of a connection that distinguish one identity from another. If they change under the same identity, its
/// previous connections are not used again: a file may hold another certificate than when they were made.
struct ConnectionMarks: Equatable {
    private let trust: TrustPolicy
    private let certificate: CertificateContent?
    private let handshakes: [Handshake]

    /// - Parameter certificate: the content of the certificate that this request shows; whether its key could be unlocked was
    ///   checked when it was loaded.
    init(_ request: TransferRequest, certificate: CertificateContent?) {
        trust = request.trust
        self.certificate = certificate
        handshakes = request.handshakes
    }
}

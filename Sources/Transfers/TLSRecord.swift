internal import COpenSSL
internal import WatchwordCore
internal import WatchwordProtocol

/// The state that OpenSSL's callbacks record for one connection. The connection's context owns it, so that it exists as long as
/// a callback can be called. Used on the engine's loop only.
final class TLSRecord {
    enum Peer { case origin, proxy }

    let peer: Peer
    private var certificate: CertificateCheck
    /// Whether to end the handshake if the server requests a client certificate.
    private let refusesRequest: Bool
    /// Whether a server rejects a client certificate only after the handshake, as in TLS 1.3.
    private(set) var refusesAfterHandshake = false
    /// Whether the handshake is complete.
    var isComplete: Bool { session != nil }
    /// OpenSSL's `SSL` of the connection; `nil` before its handshake is complete. Valid while the connection is open.
    private(set) var session: OpaquePointer?
    private(set) var certificateRequest: ClientCertificateRequest?
    /// The number of the fatal alert that the peer sent (RFC 8446 section 6.2).
    private(set) var alert: Int?

    init(_ peer: Peer, host: String, policy: TrustPolicy, refusesRequest: Bool = false) {
        self.refusesRequest = refusesRequest
        self.peer = peer
        certificate = CertificateCheck(host: host, policy: policy)
    }

    /// Why the server certificate was rejected; `nil` if it was accepted or has not been received.
    var refusal: ServerTrustFacts? { certificate.refusal }

    /// Whether the handshake was ended because the server requested a client certificate.
    var hasRefusedRequest: Bool { refusesRequest && certificateRequest != nil }

    /// Verifies the server certificate, and returns whether it is accepted. An error does not end the verification, so that all
    /// errors are recorded.
    func accept(_ context: OpaquePointer) -> Bool {
        // libcurl would report an error left in OpenSSL's queue as its own.
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        X509_STORE_CTX_set_verify_cb(context) { isFine, context in
            if isFine == 0, let context {
                TLSRecord.verifying(context)?.certificate.record(X509_STORE_CTX_get_error(context))
            }
            return 1
        }
        let isComplete = X509_verify_cert(context) == 1
        return certificate.evaluate(context, isComplete: isComplete)
    }

    /// Records the server's request for a client certificate. Returns whether the handshake may continue.
    func recordRequest(_ connection: OpaquePointer) -> Bool {
        var names: [String] = []
        if let list = SSL_get0_peer_CA_list(connection) {
            for index in 0..<min(OPENSSL_sk_num(list), Int32(EngineLimits.shownIssuers)) {
                if let name = OPENSSL_sk_value(list, index) { names.append(OpenSSLText.name(OpaquePointer(name))) }
            }
        }
        certificateRequest = ClientCertificateRequest(distinguishedNames: names)
        refusesAfterHandshake = SSL_version(connection) >= TLS1_3_VERSION
        return !refusesRequest
    }

    func recordEnd(_ connection: OpaquePointer) { session = connection }

    /// - Parameter value: the level in the upper byte, the description in the lower.
    func recordAlert(_ value: Int32) {
        if value >> 8 == SSL3_AL_FATAL { alert = Int(value & 0xFF) }
    }
}

internal import COpenSSL
internal import WatchwordCore
internal import WatchwordProtocol

/// What OpenSSL's callbacks have recorded of one connection. Its context owns it, so that it is there as long as anything can
/// call back. Lives on the engine's loop.
final class TLSRecord {
    enum Peer { case origin, proxy }

    let peer: Peer
    /// A name, or an address without brackets.
    private let host: String
    private let policy: TrustPolicy
    /// A server that asks for a certificate ends the handshake.
    private let refusesRequest: Bool
    private(set) var hasRefusedRequest = false
    /// A certificate is refused only after the handshake: TLS 1.3 was chosen.
    private(set) var isRefusedLate = false
    /// The handshake has come to its end.
    private(set) var isComplete = false
    private var problems: Set<ServerTrustFacts.Problem> = []

    /// Why the certificate was not accepted; `nil` when it was, or has not come yet.
    private(set) var refusal: ServerTrustFacts?
    private(set) var certificateRequest: ClientCertificateRequest?
    /// The number of the fatal alert that the other side has sent (RFC 8446 section 6.2).
    private(set) var alert: Int?

    init(_ peer: Peer, host: String, policy: TrustPolicy, refusesRequest: Bool = false) {
        self.refusesRequest = refusesRequest
        self.peer = peer
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        self.policy = policy
    }

    /// Whether the certificate that is being verified is accepted. Verifies it to the end whatever is wrong.
    func accept(_ context: OpaquePointer) -> Bool {
        // libcurl takes what is left in OpenSSL's queue for an error of its own.
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        X509_STORE_CTX_set_verify_cb(context) { isFine, context in
            if isFine == 0, let context { TLSRecord.verifying(context)?.record(X509_STORE_CTX_get_error(context)) }
            return 1
        }
        let isComplete = X509_verify_cert(context) == 1
        if !isComplete { problems.insert(.untrustedIssuer) }
        guard let leaf = X509_STORE_CTX_get0_cert(context) else { return false }
        if !isNamed(by: leaf) { problems.insert(.hostMismatch) }
        let isAccepted =
            switch policy {
            case .verify: problems.isEmpty
            case .leaf(let fingerprint):
                isComplete && fingerprint.count == 32 && CertificateFacts.keyFingerprint(of: leaf) == fingerprint
            case .ask: false
            }
        if isAccepted {
            X509_STORE_CTX_set_error(context, X509_V_OK)
        } else {
            refusal = ServerTrustFacts(chain: Self.chain(context, leaf), problems: problems)
            if X509_STORE_CTX_get_error(context) == X509_V_OK {
                X509_STORE_CTX_set_error(context, X509_V_ERR_APPLICATION_VERIFICATION)
            }
        }
        return isAccepted
    }

    private func record(_ error: Int32) {
        let problem: ServerTrustFacts.Problem =
            switch error {
            case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: .selfSigned
            case X509_V_ERR_CERT_HAS_EXPIRED: .expired
            case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid
            case X509_V_ERR_CERT_REVOKED: .revoked
            case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK: .weakKey
            default: .untrustedIssuer
            }
        problems.insert(problem)
    }

    /// Only the alternative names count: those of addresses for an address, the others for a name (RFC 9525 section 6).
    private func isNamed(by leaf: OpaquePointer) -> Bool {
        if let address = a2i_IPADDRESS(host) {
            ASN1_OCTET_STRING_free(address)
            return X509_check_ip_asc(leaf, host, 0) == 1
        }
        // A final dot is no part of the name in a certificate.
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        let flags = UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
        return !name.isEmpty && X509_check_host(leaf, name, name.utf8.count, flags, nil) == 1
    }

    private static func chain(_ context: OpaquePointer, _ leaf: OpaquePointer) -> [CertificateFacts] {
        guard let chain = X509_STORE_CTX_get0_chain(context), OPENSSL_sk_num(chain) > 0 else {
            return [CertificateFacts(leaf)]
        }
        return (0..<min(OPENSSL_sk_num(chain), Int32(EngineLimits.shownCertificates))).compactMap { index in
            OPENSSL_sk_value(chain, index).map { CertificateFacts(OpaquePointer($0)) }
        }
    }

    /// Whether the handshake may go on.
    func recordRequest(_ connection: OpaquePointer) -> Bool {
        var names: [String] = []
        if let list = SSL_get0_peer_CA_list(connection) {
            for index in 0..<min(OPENSSL_sk_num(list), Int32(EngineLimits.shownIssuers)) {
                if let name = OPENSSL_sk_value(list, index) { names.append(OpenSSLText.name(OpaquePointer(name))) }
            }
        }
        certificateRequest = ClientCertificateRequest(distinguishedNames: names)
        isRefusedLate = SSL_version(connection) >= TLS1_3_VERSION
        hasRefusedRequest = refusesRequest
        return !refusesRequest
    }

    func recordEnd() { isComplete = true }

    /// - Parameter value: the level in the upper byte, the description in the lower.
    func recordAlert(_ value: Int32) {
        if value >> 8 == SSL3_AL_FATAL { alert = Int(value & 0xFF) }
    }
}

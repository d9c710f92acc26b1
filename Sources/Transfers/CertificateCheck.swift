internal import COpenSSL
internal import WatchwordCore
internal import WatchwordProtocol

/// Decides whether a server certificate is accepted, after OpenSSL has verified its chain.
struct CertificateCheck {
    /// A host name, or an IP address without brackets.
    private let host: String
    private let policy: TrustPolicy
    private var problems: Set<ServerTrustFacts.Problem> = []
    /// Why the certificate was rejected; `nil` if it was accepted or has not been received.
    private(set) var refusal: ServerTrustFacts?

    init(host: String, policy: TrustPolicy) {
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        self.policy = policy
    }

    /// Returns whether the certificate is accepted, and sets the error code of `context` (an `X509_STORE_CTX`) accordingly.
    /// - Parameter isComplete: whether OpenSSL processed the whole chain, with or without errors.
    mutating func evaluate(_ context: OpaquePointer, isComplete: Bool) -> Bool {
        if !isComplete { problems.insert(.untrustedIssuer) }
        guard let leaf = X509_STORE_CTX_get0_cert(context) else { return false }
        if !isNamed(by: leaf) { problems.insert(.hostMismatch) }  // guard: tls-host-name
        let isAccepted =
            switch policy {
            case .verify: problems.isEmpty
            case .leaf(let fingerprint):
                // guard: tls-pinned-key
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

    /// Records an error that OpenSSL found during verification.
    mutating func record(_ error: Int32) {
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

    /// Checks the subject alternative names: IP addresses for an address, DNS names for a name (RFC 9525 section 6).
    private func isNamed(by leaf: OpaquePointer) -> Bool {
        if let address = a2i_IPADDRESS(host) {
            ASN1_OCTET_STRING_free(address)
            return X509_check_ip_asc(leaf, host, 0) == 1
        }
        // Names in certificates have no final dot.
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
}

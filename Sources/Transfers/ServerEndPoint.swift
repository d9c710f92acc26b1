internal import CCurl
internal import COpenSSL
internal import WatchwordProtocol

/// The channel binding `tls-server-end-point` (RFC 5929 section 4): which certificate the client sees at the other end. A login
/// that names it is of no use to somebody who passes it on to another server.
enum ServerEndPoint {
    /// What a login by GSS-API is bound to, the name of the binding before the hash (RFC 5056 section 2.1).
    static func applicationData(_ hash: [UInt8]) -> [UInt8] { Array("tls-server-end-point:".utf8) + hash }

    /// The hash of the certificate of the connection that `easy` uses now; `nil` without TLS to an origin, and for a certificate
    /// whose signature names no hash, for which the binding is not defined. Only inside a callback of the transfer.
    static func hash(on easy: EasyHandle) -> [UInt8]? {
        guard let session = watchword_curl_easy_get_ssl(easy.pointer).map(OpaquePointer.init),
            TLSRecord.of(session)?.peer == .origin, let certificate = SSL_get0_peer_certificate(session)
        else { return nil }
        return hash(of: certificate)
    }

    /// - Parameter certificate: an `X509`, which is only read.
    static func hash(of certificate: OpaquePointer) -> [UInt8]? {
        var algorithm = NID_undef
        guard X509_get_signature_info(certificate, &algorithm, nil, nil, nil) == 1 else { return nil }
        // What is broken is replaced (section 4.1).
        let isBroken = algorithm == NID_md5 || algorithm == NID_sha1
        guard let function = isBroken ? EVP_sha256() : EVP_get_digestbyname(OBJ_nid2sn(algorithm)) else { return nil }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(certificate, function, &digest, &count) == 1 else { return nil }
        return Array(digest.prefix(Int(count)))
    }
}

extension ResponseHeaders {
    /// It asks for a login by Negotiate, whole.
    var asksForTicket: Bool {
        isComplete && status == 401
            && fields.contains {
                $0.name.lowercased() == "www-authenticate" && $0.value.lowercased().hasPrefix("negotiate")
            }
    }
}

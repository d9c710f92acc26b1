internal import CCurl
internal import COpenSSL
internal import WatchwordCore

/// The channel binding `tls-server-end-point` (RFC 5929 section 4): a hash of the server's certificate. A login that includes
/// it cannot be relayed to another server.
enum ServerEndPoint {
    /// The channel binding data for GSS-API: the name of the binding, then the hash (RFC 5056 section 2.1).
    static func applicationData(_ hash: [UInt8]) -> [UInt8] { Array("tls-server-end-point:".utf8) + hash }

    /// The hash of the server certificate of the connection that `easy` uses; `nil` without TLS to an origin. Valid only in a
    /// callback of the transfer.
    static func hash(on easy: EasyHandle) -> [UInt8]? {
        guard let session = watchword_curl_easy_get_ssl(easy.pointer).map(OpaquePointer.init),
            TLSRecord.of(session)?.peer == .origin, let certificate = SSL_get0_peer_certificate(session)
        else { return nil }
        return hash(of: certificate)
    }

    /// - Parameter certificate: an `X509`, which is not changed.
    static func hash(of certificate: OpaquePointer) -> [UInt8]? {
        var algorithm = NID_undef
        X509_get_signature_info(certificate, &algorithm, nil, nil, nil)
        // MD5 and SHA-1 are replaced by SHA-256 (section 4.1). For a signature without a hash, such as Ed25519, the binding is
        // undefined; SHA-256 is used, because otherwise the choice of certificate could turn the binding off.
        let isReplaced = [NID_md5, NID_sha1, NID_undef].contains(algorithm)
        guard let function = isReplaced ? EVP_sha256() : EVP_get_digestbyname(OBJ_nid2sn(algorithm)) else { return nil }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(certificate, function, &digest, &count) == 1 else { return nil }
        return Array(digest.prefix(Int(count)))
    }
}

extension SharedRequest {
    /// The hash that the login to the origin is bound to; `nil` for none.
    var boundEndPoint: [UInt8]? { handshakes.first { $0.target == .origin }?.serverEndPoint }
}

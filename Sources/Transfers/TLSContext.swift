internal import COpenSSL
internal import WatchwordCore

/// The records of OpenSSL's contexts, and the callbacks that fill them.
extension TLSRecord {
    /// The place in a context where its record is; -1 without memory. A context gives its record back when it goes.
    private static let index = CRYPTO_get_ex_new_index(
        CRYPTO_EX_INDEX_SSL_CTX, 0, nil, nil, nil,
        { _, record, _, _, _, _ in
            if let record { Unmanaged<TLSRecord>.fromOpaque(record).release() }
        })

    /// Lets this record watch the handshakes of `context`, and decide on the certificate that the other side shows.
    func attach(to context: OpaquePointer) -> Bool {
        let record = Unmanaged.passRetained(self)
        guard Self.index >= 0, SSL_CTX_set_ex_data(context, Self.index, record.toOpaque()) == 1 else {
            record.release()
            return false
        }
        // A certificate is shown, and asked for, once: when the connection is made.
        SSL_CTX_set_options(context, watchword_ssl_no_renegotiation)
        SSL_CTX_set_post_handshake_auth(context, 0)
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, _ in
                guard let store, let record = TLSRecord.verifying(store) else { return 0 }
                return record.accept(store) ? 1 : 0
            }, nil)
        SSL_CTX_set_cert_cb(
            context,
            { connection, _ in
                guard let connection, let record = TLSRecord.of(connection) else { return 1 }
                return record.recordRequest(connection) ? 1 : 0
            }, nil)
        SSL_CTX_set_info_callback(context) { connection, event, value in
            guard let connection else { return }
            if event & watchword_ssl_read_alert == watchword_ssl_read_alert {
                TLSRecord.of(connection)?.recordAlert(value)
            }
            if event & SSL_CB_HANDSHAKE_DONE != 0 { TLSRecord.of(connection)?.recordEnd() }
        }
        return true
    }

    /// The record of a connection (`SSL`).
    static func of(_ connection: OpaquePointer) -> TLSRecord? {
        guard index >= 0, let context = SSL_get_SSL_CTX(connection), let record = SSL_CTX_get_ex_data(context, index)
        else { return nil }
        return Unmanaged<TLSRecord>.fromOpaque(record).takeUnretainedValue()
    }

    /// The record of the connection whose certificate is being verified (`X509_STORE_CTX`).
    static func verifying(_ store: OpaquePointer) -> TLSRecord? {
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()).flatMap { of(OpaquePointer($0)) }
    }

    /// Whether libcurl has made the context for its proxy: only for that it is told, in `CURLOPT_PROXY_SSL_OPTIONS`, to leave
    /// out a protection of TLS 1.0, which is never spoken.
    static func isProxys(_ context: OpaquePointer) -> Bool {
        SSL_CTX_get_options(context) & watchword_ssl_dont_insert_empty_fragments != 0
    }
}

internal import COpenSSL
internal import WatchwordCore

/// The records attached to OpenSSL contexts, and the callbacks that fill them.
extension TLSRecord {
    /// The ex_data index of the record in a context; -1 if memory was exhausted. A context releases its record when it is
    /// freed.
    private static let index = CRYPTO_get_ex_new_index(
        CRYPTO_EX_INDEX_SSL_CTX, 0, nil, nil, nil,
        { _, record, _, _, _, _ in
            if let record { Unmanaged<TLSRecord>.fromOpaque(record).release() }
        })

    /// Lets this record observe the handshakes of `context` and decide on the server certificate. Returns `false` if memory is
    /// exhausted.
    func attach(to context: OpaquePointer) -> Bool {
        let record = Unmanaged.passRetained(self)
        guard Self.index >= 0, SSL_CTX_set_ex_data(context, Self.index, record.toOpaque()) == 1 else {
            record.release()
            return false
        }
        // Certificates may be exchanged only in the first handshake of a connection.
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
            if event & SSL_CB_HANDSHAKE_DONE != 0 { TLSRecord.of(connection)?.recordEnd(connection) }
        }
        return true
    }

    /// The record of a connection (`SSL`).
    static func of(_ connection: OpaquePointer) -> TLSRecord? {
        guard index >= 0, let context = SSL_get_SSL_CTX(connection), let record = SSL_CTX_get_ex_data(context, index)
        else { return nil }
        return Unmanaged<TLSRecord>.fromOpaque(record).takeUnretainedValue()
    }

    /// The record of the connection that belongs to an `X509_STORE_CTX`.
    static func verifying(_ store: OpaquePointer) -> TLSRecord? {
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()).flatMap { of(OpaquePointer($0)) }
    }

    /// Whether libcurl made the context for the connection to the proxy. Such contexts are marked with an option that is set
    /// through `CURLOPT_PROXY_SSL_OPTIONS`. The option only turns off a protection for TLS 1.0, a version that is never used.
    static func isProxyContext(_ context: OpaquePointer) -> Bool {
        SSL_CTX_get_options(context) & watchword_ssl_dont_insert_empty_fragments != 0
    }
}

internal import COpenSSL
internal import WatchwordProtocol

/// Converts OpenSSL objects to text.
enum OpenSSLText {
    /// Returns the text that `write` writes to a BIO.
    /// - Parameter write: returns 0 or less on failure; the text is then empty.
    static func written(by write: (OpaquePointer) -> Int32) -> String {
        guard let output = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free_all(output) }
        guard write(output) > 0 else { return "" }
        let bytes = [UInt8](unsafeUninitializedCapacity: BIO_ctrl_pending(output)) { buffer, count in
            count = max(0, Int(BIO_read(output, buffer.baseAddress, Int32(clamping: buffer.count))))
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A distinguished name in the format of RFC 4514.
    static func name(_ name: OpaquePointer?) -> String {
        guard let name else { return "" }
        return written { watchword_x509_print_name($0, name) }
    }

    /// A time such as `2026-01-31T12:00:00Z`.
    static func time(_ time: UnsafePointer<ASN1_TIME>?) -> String {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return "" }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return "\(date)T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
    }
}

extension CertificateFacts {
    /// - Parameter certificate: an `X509`, which is not changed.
    init(_ certificate: OpaquePointer) {
        self.init(
            pem: OpenSSLText.written { PEM_write_bio_X509($0, certificate) },
            subject: OpenSSLText.name(X509_get_subject_name(certificate)),
            issuer: OpenSSLText.name(X509_get_issuer_name(certificate)),
            notBefore: OpenSSLText.time(X509_get0_notBefore(certificate)),
            notAfter: OpenSSLText.time(X509_get0_notAfter(certificate)), sha256: Self.fingerprint(of: certificate),
            spkiSha256: Self.keyFingerprint(of: certificate), subjectAltNames: Self.alternativeNames(of: certificate))
    }

    /// SHA-256 of the certificate in DER; empty if memory is exhausted.
    static func fingerprint(of certificate: OpaquePointer) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        return X509_digest(certificate, EVP_sha256(), &digest, &count) == 1 ? Array(digest.prefix(Int(count))) : []
    }

    /// SHA-256 of the SubjectPublicKeyInfo in DER; empty if there is none.
    static func keyFingerprint(of certificate: OpaquePointer) -> [UInt8] {
        var encoded: UnsafeMutablePointer<UInt8>?
        let length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &encoded)
        guard length > 0, let encoded else { return [] }
        defer { CRYPTO_free(encoded, #file, #line) }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        let status = EVP_Digest(encoded, Int(length), &digest, &count, EVP_sha256(), nil)
        return status == 1 ? Array(digest.prefix(Int(count))) : []
    }

    private static func alternativeNames(of certificate: OpaquePointer) -> [String] {
        guard let names = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return [] }
        let stack = OpaquePointer(names)
        defer { OPENSSL_sk_pop_free(stack) { GENERAL_NAME_free($0?.assumingMemoryBound(to: GENERAL_NAME.self)) } }
        return (0..<OPENSSL_sk_num(stack)).compactMap { index in
            OPENSSL_sk_value(stack, index).flatMap { text(of: $0.assumingMemoryBound(to: GENERAL_NAME.self)) }
        }
    }

    private static func text(of name: UnsafePointer<GENERAL_NAME>) -> String? {
        var type: Int32 = 0
        guard let value = GENERAL_NAME_get0_value(name, &type) else { return nil }
        guard type == GEN_DNS || type == GEN_IPADD else { return nil }
        let string = value.assumingMemoryBound(to: ASN1_STRING.self)
        let bytes = Array(
            UnsafeBufferPointer(start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string))))
        return type == GEN_DNS ? "DNS:\(shownName(bytes))" : address(bytes).map { "IP:\($0)" }
    }

    /// A DNS name in which a question mark replaces every byte that is not printable ASCII.
    private static func shownName(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }

    private static func address(_ bytes: [UInt8]) -> String? {
        switch bytes.count {
        case 4: return bytes.map(String.init).joined(separator: ".")
        case 16:
            return stride(from: 0, to: 16, by: 2).map { String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16) }
                .joined(separator: ":")
        default: return nil
        }
    }
}

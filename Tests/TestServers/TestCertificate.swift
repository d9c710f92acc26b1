import COpenSSL
package import Foundation
package import WatchwordProtocol

/// A certificate with its key, generated for one test. It is never freed, because a test is short.
package struct TestCertificate: @unchecked Sendable {
    // `@unchecked Sendable`: both are only read after `init`, and never freed.
    package let certificate: OpaquePointer
    package let key: OpaquePointer

    package enum Key { case curve, weakRSA }

    /// - Parameters:
    ///   - names: as in a configuration file of OpenSSL: `DNS:a.example,IP:127.0.0.1`; empty for none.
    ///   - issuer: `nil` for a certificate that signs itself.
    ///   - validity: in seconds from now.
    package init(
        _ commonName: String, names: String = "", issuer: TestCertificate? = nil, isAuthority: Bool = false,
        validity: ClosedRange<Int> = -3600...3600, key kind: Key = .curve
    ) {
        key = Self.makeKey(kind)
        certificate = X509_new()
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), Int.random(in: 1...(1 << 40)))
        X509_gmtime_adj(X509_getm_notBefore(certificate), validity.lowerBound)
        X509_gmtime_adj(X509_getm_notAfter(certificate), validity.upperBound)
        let subject = X509_get_subject_name(certificate)
        for (field, text) in [("O", "Watchword, Tests"), ("CN", commonName)] {
            X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8, Array(text.utf8), Int32(text.utf8.count), -1, 0)
        }
        X509_set_issuer_name(certificate, issuer.map { X509_get_subject_name($0.certificate) } ?? subject)
        X509_set_pubkey(certificate, key)
        if isAuthority { add(NID_basic_constraints, "critical,CA:TRUE") }
        if !names.isEmpty { add(NID_subject_alt_name, names) }
        precondition(X509_sign(certificate, issuer?.key ?? key, EVP_sha256()) > 0)
    }

    private static func makeKey(_ kind: Key) -> OpaquePointer {
        let context = EVP_PKEY_CTX_new_id(kind == .curve ? EVP_PKEY_EC : EVP_PKEY_RSA, nil)
        defer { EVP_PKEY_CTX_free(context) }
        EVP_PKEY_keygen_init(context)
        switch kind {
        case .curve: EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
        case .weakRSA: EVP_PKEY_CTX_set_rsa_keygen_bits(context, 1024)
        }
        var key: OpaquePointer?
        precondition(EVP_PKEY_keygen(context, &key) == 1)
        return key!
    }

    private func add(_ nid: Int32, _ text: String) {
        let field = X509V3_EXT_conf_nid(nil, nil, nid, text)
        precondition(field != nil && X509_add_ext(certificate, field, -1) == 1)
        X509_EXTENSION_free(field)
    }

    package var der: Data {
        var bytes: [UInt8] = []
        _ = Self.written { output in
            let status = i2d_X509_bio(output, certificate)
            bytes = Self.read(output)
            return status
        }
        return Data(bytes)
    }

    package var pem: String { Self.written { PEM_write_bio_X509($0, certificate) } }

    /// PKCS#8, encrypted when there is a passphrase.
    package func keyPEM(passphrase: String? = nil) -> String {
        Self.written { output in
            guard let passphrase else {
                return PEM_write_bio_PKCS8PrivateKey(output, key, nil, nil, 0, nil, nil)
            }
            return PEM_write_bio_PKCS8PrivateKey(
                output, key, EVP_aes_256_cbc(), passphrase, Int32(passphrase.utf8.count), nil, nil)
        }
    }

    package func pkcs12(passphrase: String) -> Secret {
        let store = PKCS12_create(passphrase, "test", key, certificate, nil, 0, 0, 0, 0, 0)
        var bytes: [UInt8] = []
        _ = Self.written { output in
            let status = i2d_PKCS12_bio(output, store)
            bytes = Self.read(output)
            return status
        }
        return bytes.withUnsafeBytes { Secret(copying: $0) }
    }

    private static func written(by write: (OpaquePointer) -> Int32) -> String {
        let output = BIO_new(BIO_s_mem())!
        defer { BIO_free_all(output) }
        precondition(write(output) == 1)
        return String(decoding: read(output), as: UTF8.self)
    }

    private static func read(_ output: OpaquePointer) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(output))
        BIO_read(output, &bytes, Int32(bytes.count))
        return bytes
    }
}

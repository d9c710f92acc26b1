import CKeyDerivation
import COpenSSL
import Testing

@Suite struct KeyDerivationTests {
    /// An encrypted key in PEM, the key of which is derived by PBKDF2.
    private func pem(rounds: Int32) -> [UInt8] {
        let key = makeKey()
        let plain = EVP_PKEY2PKCS8(key)
        let sealed = PKCS8_encrypt(-1, EVP_aes_256_cbc(), "secret", 6, nil, 0, rounds, plain)
        let output = BIO_new(BIO_s_mem())
        defer {
            EVP_PKEY_free(key)
            PKCS8_PRIV_KEY_INFO_free(plain)
            X509_SIG_free(sealed)
            BIO_free_all(output)
        }
        PEM_write_bio_PKCS8(output, sealed)
        var text = [UInt8](repeating: 0, count: BIO_ctrl_pending(output))
        BIO_read(output, &text, Int32(text.count))
        return text
    }

    private func makeKey() -> OpaquePointer? {
        let context = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        EVP_PKEY_keygen_init(context)
        EVP_PKEY_keygen(context, &key)
        return key
    }

    private func rounds(of pem: [UInt8]) -> UInt64 {
        let input = BIO_new_mem_buf(pem, Int32(pem.count))
        defer { BIO_free_all(input) }
        return watchword_rounds_of_pem(input)
    }

    @Test(arguments: [1, 2048, 4_000_000] as [Int32]) func readsTheRoundsOfAKey(count: Int32) {
        #expect(rounds(of: pem(rounds: count)) == UInt64(count))
    }

    @Test func addsTheRoundsOfAllKeys() {
        #expect(rounds(of: pem(rounds: 10) + pem(rounds: 7)) == 17)
    }

    @Test func countsNothingInAnInvalidKey() {
        #expect(rounds(of: Array("no PEM at all\n".utf8)) == 0)
        #expect(rounds(of: Array(pem(rounds: 10).dropLast(40))) == 0)
    }

    @Test func readsTheRoundsOfAStore() throws {
        let key = makeKey()
        let bag = PKCS12_create("secret", nil, key, nil, nil, NID_aes_256_cbc, -1, 3000, 5000, 0)
        defer {
            EVP_PKEY_free(key)
            PKCS12_free(bag)
        }
        let store = try #require(bag)
        #expect(watchword_rounds_of_mac(store) == 5000)
        #expect(watchword_rounds_of_pkcs12(store, "secret", .max) == 3000)
    }
}

internal import COpenSSL
internal import WatchwordProtocol

/// The key of a token (RFC 9449), with ECDSA on P-256 and SHA-256 (ES256, RFC 7518 section 3.4).
extension ProofKey {
    private static let coordinateBytes = 32

    /// Returns a new key; `nil` if there is no memory.
    static func make() -> ProofKey? {
        guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { return nil }
        defer { EVP_PKEY_free(key) }
        return ProofKey(key)
    }

    private init?(_ key: OpaquePointer) {
        let count = i2d_PrivateKey(key, nil)
        guard count > 0, let point = Self.point(of: key) else { return nil }
        let der = Secret(capacity: Int(count)) { block in
            var end = block.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return max(0, Int(i2d_PrivateKey(key, &end)))
        }
        self.init(privateKey: der, publicKey: point)
    }

    /// Returns the key in DER; `nil` if it is not a key on this curve.
    init?(_ der: Secret) {
        guard let key = Self.key(der) else { return nil }
        defer { EVP_PKEY_free(key) }
        guard let point = Self.point(of: key) else { return nil }
        self.init(privateKey: der, publicKey: point)
    }

    private static func key(_ der: Secret) -> OpaquePointer? {
        der.withUnsafeBytes { bytes in
            var start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return d2i_PrivateKey(EVP_PKEY_EC, nil, &start, bytes.count)
        }
    }

    /// The coordinates of the public point, without the byte that says that they are not compressed.
    private static func point(of key: OpaquePointer) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 2 * coordinateBytes + 1)
        var count = 0
        guard EVP_PKEY_get_octet_string_param(key, "pub", &bytes, bytes.count, &count) == 1,
            count == bytes.count, bytes[0] == 4
        else { return nil }
        return Array(bytes.dropFirst())
    }

    /// Returns the signature of `text`: both numbers, 32 bytes each.
    func signature(of text: [UInt8]) -> [UInt8]? {
        guard let key = Self.key(privateKey), let context = EVP_MD_CTX_new() else { return nil }
        defer {
            EVP_MD_CTX_free(context)
            EVP_PKEY_free(key)
        }
        var der = [UInt8](repeating: 0, count: 128)
        var count = der.count
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, &der, &count, text, text.count) == 1
        else { return nil }
        return Self.numbers(inSignature: der, count)
    }

    private static func numbers(inSignature der: [UInt8], _ count: Int) -> [UInt8]? {
        der.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            guard let parsed = d2i_ECDSA_SIG(nil, &start, count) else { return nil }
            defer { ECDSA_SIG_free(parsed) }
            var numbers = [UInt8](repeating: 0, count: 2 * coordinateBytes)
            let isWhole = numbers.withUnsafeMutableBufferPointer { buffer in
                let (r, s) = (ECDSA_SIG_get0_r(parsed), ECDSA_SIG_get0_s(parsed))
                let size = Int32(coordinateBytes)
                return BN_bn2binpad(r, buffer.baseAddress, size) == size
                    && BN_bn2binpad(s, buffer.baseAddress?.advanced(by: coordinateBytes), size) == size
            }
            return isWhole ? numbers : nil
        }
    }

    /// The coordinates in base64url.
    var coordinates: (x: String, y: String) {
        (
            OAuthText.base64URL(Array(publicKey.prefix(Self.coordinateBytes))),
            OAuthText.base64URL(Array(publicKey.dropFirst(Self.coordinateBytes)))
        )
    }
}

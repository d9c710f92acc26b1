internal import COpenSSL
internal import WatchwordProtocol

/// The hash of a Digest challenge (RFC 7616 section 3.3), with or without `-sess`.
struct DigestAlgorithm: Sendable, Equatable {
    enum Hash: Int, Sendable {
        case md5, sha256, sha512t256
    }

    let hash: Hash
    let isSession: Bool

    /// Parses an algorithm name, ignoring case; `nil` means MD5. Returns `nil` for an unknown algorithm.
    init?(name: String?) {
        let name = (name ?? "MD5").asciiLowercased
        isSession = name.hasSuffix("-sess")
        switch isSession ? String(name.dropLast(5)) : name {
        case "md5": hash = .md5
        case "sha-256": hash = .sha256
        case "sha-512-256": hash = .sha512t256
        default: return nil
        }
    }

    /// The name of the standard.
    var name: String {
        let base =
            switch hash {
            case .md5: "MD5"
            case .sha256: "SHA-256"
            case .sha512t256: "SHA-512-256"
            }
        return isSession ? base + "-sess" : base
    }

    var strength: Int { hash.rawValue }

    /// Returns the hash of the concatenated `parts` in lower-case hexadecimal digits. A hash of a password is as good
    /// as the password, so the result is a secret.
    func hexDigest(of parts: [SecretPart]) -> Secret {
        let digest = RunningDigest(self)
        for part in parts { part.withUnsafeBytes { digest.update($0) } }
        return digest.finish()
    }
}

/// A hash of data that arrives in pieces.
final class RunningDigest {
    private let context: OpaquePointer
    private let algorithm: DigestAlgorithm
    private static let maxDigestBytes = 64

    init(_ algorithm: DigestAlgorithm) {
        let function =
            switch algorithm.hash {
            case .md5: EVP_md5()
            case .sha256: EVP_sha256()
            case .sha512t256: EVP_sha512_256()
            }
        guard let context = EVP_MD_CTX_new() else { fatalError("out of memory for a hash") }
        (self.context, self.algorithm) = (context, algorithm)
        check(EVP_DigestInit_ex(context, function, nil))
    }

    // Freeing the context wipes it (EVP_MD_CTX_free(3)).
    deinit { EVP_MD_CTX_free(context) }

    func update(_ bytes: UnsafeRawBufferPointer) { check(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)) }

    /// Returns the hash in lower-case hexadecimal digits; no call may follow.
    func finish() -> Secret {
        Secret(capacity: Self.maxDigestBytes) { digest in
            var count: UInt32 = 0
            check(EVP_DigestFinal_ex(context, digest.baseAddress?.assumingMemoryBound(to: UInt8.self), &count))
            return Int(count)
        }.hex
    }

    /// OpenSSL's functions return 1 on success. With a known hash they fail only if memory is exhausted, or if OpenSSL
    /// was built without MD5.
    private func check(_ status: Int32) {
        precondition(status == 1, "OpenSSL cannot compute \(algorithm.name)")
    }
}

extension Secret {
    /// Two lower-case hexadecimal digits for each byte.
    fileprivate var hex: Secret {
        let digits = Array("0123456789abcdef".utf8)
        return withUnsafeBytes { bytes in
            Secret(capacity: bytes.count * 2) { destination in
                for (index, byte) in bytes.enumerated() {
                    destination[index * 2] = digits[Int(byte >> 4)]
                    destination[index * 2 + 1] = digits[Int(byte & 15)]
                }
                return bytes.count * 2
            }
        }
    }
}

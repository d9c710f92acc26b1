import ArgumentParser
import Glibc
import WatchwordProtocol

/// Whom to trust, and whom to be.
struct TLSOptions: ParsableArguments {
    @Option(
        name: [.customShort("E"), .long],
        help: ArgumentHelp(
            "The certificate to show to a server that asks for one: PEM, PKCS#12, or a pkcs11: URI.",
            valueName: "file[:passphrase]"),
        completion: .file())
    var cert: String?

    @Option(
        help: ArgumentHelp("Its private key, where that is not in the same file.", valueName: "file"),
        completion: .file())
    var key: String?

    @Option(help: ArgumentHelp("The passphrase of the key.", valueName: "passphrase"))
    var pass: String?

    @Option(
        name: .customLong("pinnedpubkey"),
        help: ArgumentHelp(
            "Trust a server with this public key, whatever else is wrong with its certificate, and no server without it.",
            valueName: "sha256//base64"))
    var pinnedPublicKey: String?

    @Flag(
        name: [.customShort("k"), .long],
        help:
            "Show a certificate that is not trusted and accept it for this fetch, at a terminal only. It is asked about all the same if it was revoked, or has another key than the one accepted before."
    )
    var insecure = false

    func validate() throws {
        if let pinnedPublicKey { _ = try Self.pin(pinnedPublicKey) }
        if insecure && pinnedPublicKey != nil {
            throw ValidationError("Give -k or --pinnedpubkey, not both.")
        }
        if cert == nil && (key != nil || pass != nil) {
            throw ValidationError("--key and --pass belong to a certificate. Give --cert too.")
        }
    }

    func params(_ taken: SecretArguments.Taken, keep: Keep) throws -> TLSParams {
        var params = TLSParams()
        if let pinnedPublicKey {
            params.pin = TrustCredential(spkiSha256: try Self.pin(pinnedPublicKey))
            // Every certificate is looked at: one that others trust is not good enough.
            params.trust = .always
        }
        params.certificate = try CommandLineCertificate.make(taken, keep: keep)
        return params
    }

    /// The hash in hexadecimal.
    static func pin(_ text: String) throws -> String {
        let prefix = "sha256//"
        var base64 = String(text.dropFirst(prefix.count))
        let hash = base64.withUTF8 { Base64.decode(UnsafeRawBufferPointer($0)) }
        guard text.hasPrefix(prefix), let hash, hash.count == 32 else {
            throw ValidationError(
                "--pinnedpubkey takes one hash, as sha256// and 44 characters of base64. Files and lists of hashes are not taken."
            )
        }
        return Fingerprint.hexadecimal(hash)
    }
}
